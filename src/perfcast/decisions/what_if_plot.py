"""Plot of a what-if grid: a panel per task, the field with most numbers on the x axis, a color per combination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes

from perfcast.decisions.criteria import Output
from perfcast.decisions.what_if import Combination, Grid
from perfcast.inference.prediction import Estimate
from perfcast.report.plots.drawing import STYLE, panels, plain_axis, predictor_styles, to_svg
from perfcast.utils.errors import UserError

MAX_LINES = 8
_MAX_BARS = 24
_LEGEND_LETTERS = 118
"""Letters of a row of legend labels."""


def draw_grid(grid: Grid) -> str:
    """Return the estimates with their intervals as SVG: lines over numbers with a shaded band, else bars.

    Raises: UserError when there are more lines or bars than can be told apart.
    """
    numbers = {name: len({combination.numbers[name] for combination in grid.combinations}) for name in grid.units}
    along = max(numbers, key=lambda name: numbers[name]) if numbers else None
    x = along or grid.names[0]
    others = [name for name in grid.names if name != x]
    lines: dict[str, list[Combination]] = {}
    for combination in grid.possible:
        label = ", ".join(f"{name} {combination.values[name]}" for name in others)
        lines.setdefault(label, []).append(combination)
    if len(lines) > MAX_LINES:
        remedy = "vary fewer values, or write .csv"
        raise UserError(f"a plot must have at most {MAX_LINES} lines", f"{' x '.join(others)} are {len(lines)}", remedy)
    with matplotlib.rc_context(STYLE):
        figure, axes = panels(len(grid.outputs), columns=2, height=2.9)
        style = predictor_styles([f"{place}" for place in range(len(lines))])
        for axis, (output, title) in zip(axes, grid.outputs.items(), strict=True):
            for place, (label, combinations) in enumerate(lines.items()):
                pairs = [(each, estimate) for each in combinations if (estimate := _estimate(each, output)) is not None]
                if along is None:
                    color = style[str(place)]["color"]
                    _bars(axis, pairs, grid=grid, x=x, place=(place, len(lines)), label=label, color=color)
                else:
                    _line(axis, pairs, x, label, style[str(place)])
            axis.set_title(title)
            _label(axis, grid, x, output, numbers=along is not None)
        if others:
            longest = max(map(len, lines))
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=max(1, _LEGEND_LETTERS // (longest + 8)))
        figure.suptitle(_heading(grid), fontsize=8, x=0.01, ha="left")
        return to_svg(figure, f"Predictions over {', '.join(grid.names)}")


def _line(axis: Axes, pairs: Sequence[tuple[Combination, Estimate]], x: str, label: str, look: dict[str, Any]) -> None:
    ordered = sorted(pairs, key=lambda pair: pair[0].numbers[x])
    at = [combination.numbers[x] for combination, _ in ordered]
    axis.plot(at, [estimate.median for _, estimate in ordered], label=label, markersize=3.5, **look)
    known = [
        (place, estimate.low, estimate.high)
        for place, (_, estimate) in zip(at, ordered, strict=True)
        if estimate.low is not None
    ]
    if known:
        places, low, high = zip(*known, strict=True)
        axis.fill_between(places, low, high, color=look["color"], alpha=0.15, linewidth=0)


def _bars(
    axis: Axes,
    pairs: Sequence[tuple[Combination, Estimate]],
    *,
    grid: Grid,
    x: str,
    place: tuple[int, int],
    label: str,
    color: str,
) -> None:
    values = list(dict.fromkeys(combination.values[x] for combination in grid.combinations))
    if len(values) * place[1] > _MAX_BARS:
        fact = f"{len(values)} of {x} x {place[1]} are {len(values) * place[1]}"
        raise UserError(f"a plot must have at most {_MAX_BARS} bars", fact, "vary fewer values, or write .csv")
    width = 0.8 / place[1]
    at = [values.index(combination.values[x]) + (place[0] - (place[1] - 1) / 2) * width for combination, _ in pairs]
    medians = [estimate.median for _, estimate in pairs]
    axis.bar(at, medians, width * 0.92, color=color, alpha=0.75, label=label)
    for where, (_, estimate) in zip(at, pairs, strict=True):
        if estimate.low is not None and estimate.high is not None:
            axis.plot(
                [where, where], [estimate.low, estimate.high], color=matplotlib.rcParams["text.color"], linewidth=1
            )
    slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if len(values) > 4 else {}
    axis.set_xticks(range(len(values)), [_short(value) for value in values], **slanted)
    axis.grid(visible=False, axis="x")


def _label(axis: Axes, grid: Grid, x: str, output: Output, *, numbers: bool) -> None:
    unit = next(estimate.unit for each in grid.possible if (estimate := _estimate(each, output)) is not None)
    axis.set_ylabel(unit)
    plain_axis(axis, "y")
    if numbers:
        plain_axis(axis, "x")
        axis.set_xlabel(f"{x} ({grid.units[x]})" if grid.units[x] else x)


def _heading(grid: Grid) -> str:
    text = f"estimates by {grid.champion}, {100 * grid.level:g} % intervals"
    base_cpus = sorted({combination.base_cpu for combination in grid.possible if combination.base_cpu})
    if base_cpus:
        text += f"; hypothetical processors like {', '.join(base_cpus)}"
    impossible = len(grid.combinations) - len(grid.possible)
    return f"{text}; {impossible} of {len(grid.combinations)} combinations are impossible" if impossible else text


def _estimate(combination: Combination, output: Output) -> Estimate | None:
    return next((each for each in combination.estimates if Output.of(each) == output), None)


def _short(text: str) -> str:
    """Return the label of a bar, with line breaks between words where it is long."""
    if len(text) <= 14:
        return text
    words, lines = text.split(), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 1 > 14:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
