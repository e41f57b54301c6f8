"""An answer as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from perfcast.forecasting.answer import Answer, Estimate, MachineAnswer, Neighbour, Value
from perfcast.forecasting.completing import ORIGINS

_WIDTH = 118
GROUPS = {"audit": "dates"}
"""Groups of columns by the name a person knows them by."""


def as_text(answer: Answer) -> str:
    """Return the machines one after another: estimates, nearest measured machines, drivers, and what they rest on."""
    if any(machine.values for machine in answer):
        return "\n\n".join(_machine(machine) for machine in answer)
    rows = [[machine.machine, *_estimate(one)] for machine in answer for one in machine.estimates]
    return table(["machine", *_HEADER], rows)


_HEADER = ["task", "estimate", "interval", "unit", "support", "assumed", "least like anything measured"]


def _machine(machine: MachineAnswer) -> str:
    level = machine.estimates[0].level
    header = [f"{100 * level:g} % interval" if name == "interval" else name for name in _HEADER]
    parts = [machine.machine, *[f"note: {note}" for note in machine.notes]]
    parts.append(table(header, [_estimate(one) for one in machine.estimates]))
    changed = [f"{one.task} {100 * (one.own - 1):+.1f} %" for one in machine.estimates if one.own is not None]
    if changed:
        parts.append(f"changed by your own measurements: {', '.join(changed)}")
    if any(one.neighbours for one in machine.estimates):
        parts.append("nearest measured machines")
        rows = [
            [one.task if first else "", number(near.score), near.machine, near.published, f"{near.distance:.3f}"]
            for one in machine.estimates
            for first, near in _marked(one.neighbours)
        ]
        parts.append(table(["task", "score", "machine", "published", "distance"], rows))
    if any(one.typical for one in machine.estimates):
        parts.append("what drove it: the forecast of a typical machine of the last year, times")
        groups = sorted({driver.group for one in machine.estimates for driver in one.drivers})
        rows = [[one.task, *_drivers(one, groups), _typical(one)] for one in machine.estimates]
        parts.append(table(["task", *[GROUPS.get(group, group) for group in groups], "typical machine"], rows))
    parts += [_wrapped(f"{origin} ({meaning})", machine.values, origin) for origin, meaning in ORIGINS.items()]
    return "\n".join(part for part in parts if part)


def _estimate(one: Estimate) -> list[str]:
    interval = "" if one.low is None or one.high is None else f"{number(one.low)} to {number(one.high)}"
    support = "" if one.support is None else f"{one.support:.2f}"
    return [one.task, number(one.median), interval, one.unit, support, str(one.assumed), one.unlike or ""]


def _marked(neighbours: Sequence[Neighbour]) -> list[tuple[bool, Neighbour]]:
    return [(place == 0, near) for place, near in enumerate(neighbours)]


def _drivers(one: Estimate, groups: Sequence[str]) -> list[str]:
    factors = {driver.group: driver.factor for driver in one.drivers}
    return [f"{factors.get(group, 1.0):.2f}" for group in groups]


def _typical(one: Estimate) -> str:
    return "" if one.typical is None else f"{one.typical.machine} (measured {number(one.typical.score)})"


def _wrapped(title: str, values: Sequence[Value], origin: str) -> str:
    said = [f"{value.column} {_cell(value)}" for value in values if value.origin == origin]
    if not said:
        return ""
    lines, line = [], f"{title}:"
    for place, text in enumerate(said):
        ended = text + ("," if place + 1 < len(said) else "")
        if len(line) + 1 + len(ended) > _WIDTH:
            lines.append(line)
            line = " "
        line += f" {ended}"
    return "\n".join([*lines, line])


def _cell(value: Value) -> str:
    text = f"{value.value:g}" if isinstance(value.value, float) else value.value
    return f"{text} {value.unit}" if value.unit and value.unit not in ("month", "quarter") else text


def number(value: float) -> str:
    """Return a score with three significant digits or more."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns, indented; those of numbers to the right."""
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header))]
    right = [all(_is_number(row[place]) for row in rows) for place in range(len(header))]
    lines = [
        "  "
        + "  ".join(
            text.rjust(width) if side else text.ljust(width)
            for text, width, side in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in [header, *rows]
    ]
    return "\n".join(lines)


def _is_number(text: str) -> bool:
    return not text or text.replace(".", "", 1).replace("-", "", 1).isdigit()
