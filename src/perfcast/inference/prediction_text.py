"""Predictions as texts for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfcast.inference.cells import ORIGINS
from perfcast.inference.measured_index import PublishedGroup, PublishedScores
from perfcast.inference.prediction import (
    DERIVED,
    MEASURED_FACTOR,
    OK,
    Basis,
    DerivedValue,
    Estimate,
    Prediction,
    Predictions,
    Value,
    list_outside,
)
from perfcast.inference.rules import find_rules
from perfcast.utils.terminal_tables import NO_BREAK, format_interval, format_number, render_table, wrap_text

_MAX_GROUPS = 4
"""Groups of published results that the text shows of a task, the newest first; JSON has all."""
_HEADER = ["task", "estimate", "interval", "unit", "trust"]


def format_predictions(predictions: Predictions, width: int | None = None) -> str:
    """Return the machines one after another: estimates, nearest measured results, drivers, and values by origin.

    Predictions without values are one table. `width` is that of the terminal, None for no limit.
    """
    refused = [wrap_text(f"{each.machine}: refused, {each.message}", width) for each in predictions.refused]
    answered = [prediction for prediction in predictions if prediction.status == OK]
    if any(prediction.values for prediction in answered):
        origins = {**ORIGINS, **find_rules(predictions.dataset).origin_meanings}
        return "\n\n".join([*(_format_prediction(prediction, origins, width) for prediction in answered), *refused])
    rows = [
        [each.machine, *cells]
        for each in answered
        for cells in (*map(_estimate_cells, each.estimates), *map(_derived_cells, each.derived))
    ]
    notes: dict[str, list[str]] = {}
    for each in answered:
        for note in each.notes:
            notes.setdefault(note, []).append(each.machine)
    lines = [wrap_text(f"{_name_some(machines)}: {note}", width) for note, machines in notes.items()]
    return "\n".join([*lines, *([render_table(["machine", *_HEADER], rows, width)] if rows else []), *refused])


def _name_some(machines: Sequence[str]) -> str:
    return machines[0] if len(machines) == 1 else f"{machines[0]} and {len(machines) - 1} more"


def _format_prediction(prediction: Prediction, origins: Mapping[str, str], width: int | None) -> str:
    estimates = prediction.estimates
    interval = f"{100 * estimates[0].level:g} % interval"
    header = [interval if name == "interval" else name for name in _HEADER]
    first = list_outside(estimates)
    parts = [wrap_text(": ".join([prediction.machine, *first]), width)]
    parts += [wrap_text(f"note: {note}", width) for note in prediction.notes if note not in first]
    if published := [row for estimate in estimates for row in _published_rows(estimate)]:
        parts.append("published results of this machine")
        parts.append(render_table(["task", "results", "median", "range", "compiler, year", "newest"], published, width))
        parts.append("prediction")
    parts.append(render_table(header, [_estimate_cells(estimate) for estimate in estimates], width))
    if prediction.derived:
        rows = [[*_derived_cells(each)[:4], each.formula] for each in prediction.derived]
        parts.append("derived from the estimates, as if their errors were fully correlated")
        parts.append(render_table([DERIVED, "estimate", interval, "unit", "formula"], rows, width))
    changes = [
        f"{each.task} {100 * (each.user_factor - 1):+.1f} %" for each in estimates if each.user_factor is not None
    ]
    if changes:
        parts.append(wrap_text(f"changed by your own measurements: {', '.join(changes)}", width))
    if any(estimate.neighbors for estimate in estimates):
        parts.append("nearest measured machines")
        rows = [row for estimate in estimates for row in _neighbor_rows(estimate)]
        parts.append(render_table(["task", "score", "machine", "published", "distance"], rows, width))
    if any(estimate.typical_machine for estimate in estimates):
        parts.append("drivers: factors on the score of a typical machine of the last year")
        groups = sorted({driver.group for estimate in estimates for driver in estimate.drivers})
        rows = [[each.task, *_driver_cells(each, groups), _typical_cell(each)] for each in estimates]
        header = ["task", *groups, "typical machine"]
        parts.append(render_table(header, rows, width))
    for origin, meaning in origins.items():
        values = [_format_value(value) for value in prediction.values if value.origin == origin]
        if values:
            parts.append(wrap_text(f"{origin} ({meaning}): {', '.join(values)}", width))
    return "\n".join([*parts, *(wrap_text(line, width) for line in format_basis(prediction.basis))])


def _estimate_cells(estimate: Estimate) -> list[str]:
    interval = format_interval(estimate.low, estimate.high)
    return [
        estimate.task,
        format_number(estimate.median),
        interval,
        estimate.unit,
        estimate.trust,
    ]


def _derived_cells(value: DerivedValue) -> list[str]:
    interval = format_interval(value.low, value.high)
    return [value.name, format_number(value.median), interval, value.unit, DERIVED]


def _published_rows(estimate: Estimate) -> list[list[str]]:
    """Return the row of all published results, with the id of the newest, and one for every compiler and year."""
    published = estimate.published
    if published is None:
        return []
    newest = published.results[0].result if published.results else ""
    rows = [[estimate.task, *_summary_cells(published), "all", newest]]
    for group in published.groups[:_MAX_GROUPS] if len(published.groups) > 1 else published.groups[:0]:
        label = ", ".join(map(str, filter(None, (group.setup, group.year))))
        rows.append(["", *_summary_cells(group), label, ""])
    return rows


def _summary_cells(scores: PublishedScores | PublishedGroup) -> list[str]:
    return [str(scores.count), format_number(scores.median), format_interval(scores.low, scores.high)]


def _neighbor_rows(estimate: Estimate) -> list[list[str]]:
    """Return one row per neighbor; the task stands in the first."""
    return [
        [
            estimate.task if position == 0 else "",
            _format_score(neighbor.score),
            neighbor.machine,
            neighbor.published,
            f"{neighbor.distance:.3f}",
        ]
        for position, neighbor in enumerate(estimate.neighbors)
    ]


def _driver_cells(estimate: Estimate, groups: Sequence[str]) -> list[str]:
    factors = {driver.group: driver.factor for driver in estimate.drivers}
    return [f"{factors.get(group, 1.0):.2f}" for group in groups]


def _typical_cell(estimate: Estimate) -> str:
    machine = estimate.typical_machine
    return "" if machine is None else f"{machine.machine} (measured {_format_score(machine.score)})"


def _format_score(score: float | None) -> str:
    return "-" if score is None else format_number(score)


def _format_value(value: Value) -> str:
    text = f"{value.value:g}" if isinstance(value.value, float) else value.value
    unit = f" {value.unit}" if value.unit and value.unit not in ("month", "quarter") else ""
    return f"{value.column} {text}{unit}".replace(" ", NO_BREAK)


def format_basis(basis: Basis | None) -> list[str]:
    """Return lines on data, errors, facts, and on how to check the answer."""
    if basis is None:
        return []
    until = f" up to {basis.trained_until}" if basis.trained_until else ""
    lines = [f"basis: {basis.measured_results} measured results{until}"]
    if basis.errors:
        shown = [f"{each.task} {100 * each.median:.1f} % ({100 * each.p90:.0f} %)" for each in basis.errors]
        errors = "errors in backtests at this distance, half (nine tenths) are smaller"
        lines.append(_keep_units(f"{errors}: {', '.join(shown)}"))
    for source in basis.facts:
        facts = ", ".join(fact.replace(" ", NO_BREAK) for fact in source.facts)
        public = f"public from {source.known_from}" if source.known_from else "undated"
        lines.append(f"facts of {source.subject}, {public} ({source.source}): {facts}")
    lines += [f"to check {each.task}: {each.command}" for each in basis.checks]
    if basis.moves:
        moves = [
            f"{each.task} by {100 * (each.factor - 1):+.1f} % ({100 * each.width:.0f} % of its width remain)"
            for each in basis.moves
        ]
        result = (
            f"one result of {basis.measured_task} {100 * (MEASURED_FACTOR - 1):.0f} % above its estimate (--measured)"
        )
        lines.append(_keep_units(f"{result} would move {', '.join(moves)}"))
    return lines


def _keep_units(text: str) -> str:
    return text.replace(" %", f"{NO_BREAK}%")
