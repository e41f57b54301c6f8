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
    named = {note: first + (f" and {len(others)} more" if others else "") for note, (first, *others) in notes.items()}
    lines = [wrap_text(f"{machines}: {note}", width) for note, machines in named.items()]
    return "\n".join([*lines, *([render_table(["machine", *_HEADER], rows, width)] if rows else []), *refused])


def _format_prediction(prediction: Prediction, origins: Mapping[str, str], width: int | None) -> str:
    estimates, first = prediction.estimates, list_outside(prediction.estimates)
    interval = f"{100 * estimates[0].level:g} % interval"
    parts = [wrap_text(": ".join([prediction.machine, *first]), width)]
    parts += [wrap_text(f"note: {note}", width) for note in prediction.notes if note not in first]

    def add(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        parts.extend([*([title] if title else []), render_table(header, rows, width)] if rows else [])

    published = [row for estimate in estimates for row in _published_rows(estimate)]
    header = ["task", "results", "median", "range", "compiler, year", "newest"]
    add("published results of this machine", header, published)
    header = [interval if name == "interval" else name for name in _HEADER]
    add("prediction" if published else "", header, [_estimate_cells(each) for each in estimates])
    title = "derived from the estimates, as if their errors were fully correlated"
    rows = [[*_derived_cells(each)[:4], each.formula] for each in prediction.derived]
    add(title, [DERIVED, "estimate", interval, "unit", "formula"], rows)
    changed = [(each.task, each.user_factor) for each in estimates if each.user_factor is not None]
    changes = [f"{task} {100 * (factor - 1):+.1f} %" for task, factor in changed]
    if changes:
        parts.append(wrap_text(f"changed by your own measurements: {', '.join(changes)}", width))
    rows = [
        [
            *("" if place else each.task, _format_score(near.score), near.machine),
            *(near.published, f"{near.distance:.3f}"),
        ]
        for each in estimates
        for place, near in enumerate(each.neighbors)
    ]
    add("nearest measured machines", ["task", "score", "machine", "published", "distance"], rows)
    groups = sorted({driver.group for each in estimates for driver in each.drivers})
    rows = [_driver_cells(each, groups) for each in estimates if any(other.typical_machine for other in estimates)]
    title = "drivers: factors on the score of a typical machine of the last year"
    add(title, ["task", *groups, "typical machine"], rows)
    for origin, meaning in origins.items():
        values = [_format_value(value) for value in prediction.values if value.origin == origin]
        if values:
            parts.append(wrap_text(f"{origin} ({meaning}): {', '.join(values)}", width))
    return "\n".join([*parts, *(wrap_text(line, width) for line in format_basis(prediction.basis))])


def _estimate_cells(each: Estimate) -> list[str]:
    return [each.task, format_number(each.median), format_interval(each.low, each.high), each.unit, each.trust]


def _derived_cells(each: DerivedValue) -> list[str]:
    return [each.name, format_number(each.median), format_interval(each.low, each.high), each.unit, DERIVED]


def _published_rows(estimate: Estimate) -> list[list[str]]:
    """Return the row of all published results, with the id of the newest, and one for every compiler and year."""
    published = estimate.published
    if published is None:
        return []
    newest = published.results[0].result if published.results else ""
    named: list[tuple[str, PublishedScores | PublishedGroup, str, str]] = [(estimate.task, published, "all", newest)]
    for group in published.groups[:_MAX_GROUPS] if len(published.groups) > 1 else ():
        named.append(("", group, ", ".join(map(str, filter(None, (group.setup, group.year)))), ""))
    return [
        [task, str(each.count), format_number(each.median), format_interval(each.low, each.high), label, result]
        for task, each, label, result in named
    ]


def _driver_cells(estimate: Estimate, groups: Sequence[str]) -> list[str]:
    factors = {driver.group: driver.factor for driver in estimate.drivers}
    machine = estimate.typical_machine
    usual = "" if machine is None else f"{machine.machine} (measured {_format_score(machine.score)})"
    return [estimate.task, *(f"{factors.get(group, 1.0):.2f}" for group in groups), usual]


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
        lines.append(f"{errors}: {', '.join(shown)}".replace(" %", f"{NO_BREAK}%"))
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
        above = f"{100 * (MEASURED_FACTOR - 1):.0f} % above its estimate (--measured)"
        text = f"one result of {basis.measured_task} {above} would move {', '.join(moves)}"
        lines.append(text.replace(" %", f"{NO_BREAK}%"))
    return lines
