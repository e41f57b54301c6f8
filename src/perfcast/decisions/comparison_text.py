"""Comparisons of machines as text for a terminal."""

from __future__ import annotations

from perfcast.decisions.decision_text import format_percent
from perfcast.decisions.machine_comparison import ComparedPair, Comparison
from perfcast.inference.prediction import Estimate
from perfcast.utils.terminal_tables import (
    drop_empty_columns,
    format_interval,
    format_number,
    render_table,
    wrap_text,
)


def format_comparison(comparison: Comparison, width: int | None = None) -> str:
    """Return the machines by letter, their scores, the pairs with probabilities, and the drivers of the differences."""
    letters = comparison.letters
    parts = [wrap_text(f"{letter}: {machine.machine}", width) for letter, machine in letters.items()]
    parts += [wrap_text(f"{each.name}: refused, {each.message}", width) for each in comparison.refused]
    parts += [wrap_text(f"note: {note}", width) for note in comparison.notes]
    interval = f"{100 * comparison.level:g} % interval"
    header = ["task", "machine", "published", "estimate", interval, "unit", "trust"]
    outputs = dict.fromkeys((each.task, each.target) for machine in letters.values() for each in machine.estimates)
    rows = []
    for output in outputs:
        shown = ""
        for letter, machine in letters.items():
            for estimate in machine.estimates:
                if (estimate.task, estimate.target) == output:
                    rows.append([output[0] if shown != output[0] else "", letter, *_estimate_cells(estimate)])
                    shown = output[0]
    parts.append(render_table(*drop_empty_columns(header, rows), width))
    parts.append("pairs: ratio of scores, and the probability that the first one scores higher")
    header = ["task", "pair", "ratio", interval, "first is higher", "correlation of errors"]
    pair_rows = [_pair_cells(pair) for pair in comparison.pairs]
    parts.append(render_table(*drop_empty_columns(header, pair_rows), width))
    groups = sorted({driver.group for pair in comparison.pairs for driver in pair.drivers})
    if groups:
        parts.append("drivers of the difference: factors from the second machine to the first")
        driver_rows = [
            [pair.task, f"{pair.first} / {pair.second}", *_factors(pair, groups)] for pair in comparison.pairs
        ]
        parts.append(render_table(["task", "pair", *groups], driver_rows, width))
    return "\n".join(parts)


def _estimate_cells(estimate: Estimate) -> list[str]:
    published = estimate.published
    measured = "" if published is None else f"{format_number(published.median)} ({published.count})"
    interval = format_interval(estimate.low, estimate.high)
    return [
        measured,
        format_number(estimate.median),
        interval,
        estimate.unit,
        estimate.trust,
    ]


def _pair_cells(pair: ComparedPair) -> list[str]:
    correlation = "" if pair.correlation is None else f"{pair.correlation:.2f}"
    interval = format_interval(pair.low, pair.high)
    shown = format_percent(pair.probability)
    return [pair.task, f"{pair.first} / {pair.second}", f"{pair.ratio:.3f}", interval, shown, correlation]


def _factors(pair: ComparedPair, groups: list[str]) -> list[str]:
    factors = {driver.group: driver.factor for driver in pair.drivers}
    return [f"{factors.get(group, 1.0):.2f}" for group in groups]
