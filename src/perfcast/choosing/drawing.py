"""The plot of a sweep: one panel per task, over the number of most values, a colour for every other combination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes

from perfcast.choosing.sweeping import Combination, Sweep
from perfcast.errors import UserError
from perfcast.forecasting import Estimate
from perfcast.report.plots.plot_style import STYLE, panels, plain_axis, predictor_styles
from perfcast.report.plots.svg_output import to_svg

MOST_LINES = 8
_MOST_BARS = 24
_LEGEND_LETTERS = 118
"""Letters of labels beside each other that a figure is wide."""


def draw_sweep(sweep: Sweep) -> str:
    """Return the estimates with their intervals as SVG: lines over numbers with a shaded band, else bars.

    Raises: UserError when there are more lines or bars than can be told apart.
    """
    numbers = {name: len({one.numbers[name] for one in sweep.combinations}) for name in sweep.units}
    along = max(numbers, key=lambda name: numbers[name]) if numbers else None
    x = along or sweep.names[0]
    others = [name for name in sweep.names if name != x]
    lines: dict[str, list[Combination]] = {}
    for one in sweep.possible:
        lines.setdefault(", ".join(f"{name} {one.values[name]}" for name in others), []).append(one)
    if len(lines) > MOST_LINES:
        remedy = "vary fewer values, or write .csv"
        raise UserError(
            f"a plot must have at most {MOST_LINES} lines", f"{' x '.join(others)} are {len(lines)}", remedy
        )
    with matplotlib.rc_context(STYLE):
        figure, axes = panels(len(sweep.questions), columns=2, height=2.9)
        style = predictor_styles([f"{place}" for place in range(len(lines))])
        for axis, (question, title) in zip(axes, sweep.questions.items(), strict=True):
            for place, (label, own) in enumerate(lines.items()):
                pairs = [(one, estimate) for one in own if (estimate := _estimate(one, question)) is not None]
                if along is None:
                    colour = style[str(place)]["color"]
                    _bars(axis, pairs, sweep=sweep, x=x, place=(place, len(lines)), label=label, colour=colour)
                else:
                    _line(axis, pairs, x, label, style[str(place)])
            axis.set_title(title)
            _label(axis, sweep, x, question, numbers=along is not None)
        if others:
            longest = max(map(len, lines))
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=max(1, _LEGEND_LETTERS // (longest + 8)))
        figure.suptitle(_heading(sweep), fontsize=8, x=0.01, ha="left")
        return to_svg(figure, f"Forecasts over {', '.join(sweep.names)}")


def _line(axis: Axes, pairs: Sequence[tuple[Combination, Estimate]], x: str, label: str, look: dict[str, Any]) -> None:
    ordered = sorted(pairs, key=lambda pair: pair[0].numbers[x])
    at = [one.numbers[x] for one, _ in ordered]
    axis.plot(at, [estimate.median for _, estimate in ordered], label=label, markersize=3.5, **look)
    known = [(place, one.low, one.high) for place, (_, one) in zip(at, ordered, strict=True) if one.low is not None]
    if known:
        places, low, high = zip(*known, strict=True)
        axis.fill_between(places, low, high, color=look["color"], alpha=0.15, linewidth=0)


def _bars(
    axis: Axes,
    pairs: Sequence[tuple[Combination, Estimate]],
    *,
    sweep: Sweep,
    x: str,
    place: tuple[int, int],
    label: str,
    colour: str,
) -> None:
    values = list(dict.fromkeys(one.values[x] for one in sweep.combinations))
    if len(values) * place[1] > _MOST_BARS:
        fact = f"{len(values)} of {x} x {place[1]} are {len(values) * place[1]}"
        raise UserError(f"a plot must have at most {_MOST_BARS} bars", fact, "vary fewer values, or write .csv")
    width = 0.8 / place[1]
    at = [values.index(one.values[x]) + (place[0] - (place[1] - 1) / 2) * width for one, _ in pairs]
    medians = [estimate.median for _, estimate in pairs]
    axis.bar(at, medians, width * 0.92, color=colour, alpha=0.75, label=label)
    for where, (_, one) in zip(at, pairs, strict=True):
        if one.low is not None and one.high is not None:
            axis.plot([where, where], [one.low, one.high], color=matplotlib.rcParams["text.color"], linewidth=1)
    slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if len(values) > 4 else {}
    axis.set_xticks(range(len(values)), [_short(value) for value in values], **slanted)
    axis.grid(visible=False, axis="x")


def _label(axis: Axes, sweep: Sweep, x: str, question: tuple[str, str], *, numbers: bool) -> None:
    unit = next(one.unit for each in sweep.possible if (one := _estimate(each, question)) is not None)
    axis.set_ylabel(unit)
    plain_axis(axis, "y")
    if numbers:
        plain_axis(axis, "x")
        axis.set_xlabel(f"{x} ({sweep.units[x]})" if sweep.units[x] else x)


def _heading(sweep: Sweep) -> str:
    text = f"estimates by {sweep.champion}, {100 * sweep.level:g} % intervals"
    like = sorted({one.like for one in sweep.possible if one.like})
    if like:
        text += f"; hypothetical processors like {', '.join(like)}"
    none = len(sweep.combinations) - len(sweep.possible)
    return f"{text}; {none} of {len(sweep.combinations)} combinations cannot be" if none else text


def _estimate(one: Combination, question: tuple[str, str]) -> Estimate | None:
    return next((each for each in one.estimates if (each.task, each.target) == question), None)


def _short(text: str) -> str:
    """Return a value that stands under a bar: broken between words where it is long."""
    if len(text) <= 14:
        return text
    words, lines = text.split(), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 1 > 14:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
