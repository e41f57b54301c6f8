"""Style of all plots, and their output as SVG and in an HTML page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import (
    FixedLocator,
    Formatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from perfcast.evaluation import BASELINE, Evaluation
from perfcast.report.plots.catalog import plot_entry
from perfcast.schema.display_names import predictor_label, replace_underscores
from perfcast.splits import split_label
from perfcast.utils.io import atomic_folder, write_text
from perfcast.utils.result_digests import seal_text

INK = "#1f2328"
MUTED = "#767e87"
"""Color of secondary text and lines, readable on white and on near-black."""
# Okabe and Ito, "Color universal design" (2008), without black and yellow, which vanish on one of the backgrounds.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#9467bd")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "h")
STYLE: dict[str, Any] = {
    "svg.hashsalt": "perfcast",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": MUTED,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
}
_LINEAR_DECADES = 0.5
"""Decades below which a logarithmic axis has evenly spaced ticks, because too few round numbers lie on it."""
WIDTH = 8.6
"""Width of every plot in inches."""


def predictor_styles(predictors: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return a color and a mark for each predictor, the same in every plot of one evaluation.

    The baseline is gray. Marks differ too, so that color is never the only difference.
    """
    names = sorted(name for name in predictors if name != BASELINE)
    styles: dict[str, dict[str, Any]] = {
        name: {"color": PALETTE[index % len(PALETTE)], "marker": _MARKS[index % len(_MARKS)]}
        for index, name in enumerate(names)
    }
    return {**styles, BASELINE: {"color": MUTED, "marker": "|"}}


def select_leaders(ranking: Sequence[str], count: int) -> list[str]:
    """Return the first `count` predictors of a ranking, and the baseline after them when it is not among them."""
    leaders = list(ranking[:count])
    return [*leaders, BASELINE] if BASELINE in ranking and BASELINE not in leaders else leaders


def panels(count: int, *, columns: int, height: float, **shared: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels in rows of at most `columns`; `height` is inches per row."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **shared)
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def plain_axis(axes: Axes, which: str, *, unit: str = "", log: bool = False) -> None:
    """Label one axis ("x" or "y") with plain decimals, a logarithmic one at so many ticks as have room.

    Call it after the data are drawn.
    """
    axis = getattr(axes, f"{which}axis")
    if log:
        getattr(axes, f"set_{which}scale")("log")
        axis.set_major_locator(_log_locator(*getattr(axes, f"get_{which}lim")()))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{unit}"))


def _log_locator(low: float, high: float) -> MaxNLocator | LogLocator:
    """Return the ticks of a logarithmic axis by its number of decades."""
    decades = abs(float(np.log10(high / low)))
    if decades < _LINEAR_DECADES:
        return MaxNLocator(nbins=4)
    return LogLocator(subs=(1, 2, 5) if decades < 1 else (1, 3) if decades < 2 else (1,))


def whole_numbers(axes: Axes, which: str) -> None:
    """Put ticks of one axis at whole numbers only."""
    getattr(axes, f"{which}axis").set_major_locator(MaxNLocator(nbins=6, integer=True))


def legend_below(figure: Figure, axes: Axes) -> None:
    """Put one legend for all panels below the figure."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)))


def draw_dot(panel: Axes, row: pd.Series, position: float, label: str, style: Mapping[str, Any]) -> None:
    """Draw the value of a row of metrics with its interval, and its label above, at a position along y."""
    if np.isfinite(row["low"]):
        panel.plot([row["low"], row["high"]], [position] * 2, color=style["color"])
    panel.plot(row["value"], position, linestyle="none", **style)
    at = (row["value"], position)
    panel.annotate(label, at, xytext=(0, 4), textcoords="offset points", ha="center", fontsize=7)


def draw_curves(
    evaluation: Evaluation,
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    height: float = 2.5,
    sharey: bool = False,
    under: Callable[[Axes], None] | None = None,
) -> tuple[Figure, list[Axes]] | None:
    """Draw one panel per split with the columns `x` and `y` of the best predictors and the baseline; None without rows.

    `under` draws what lies below the curves of a panel.
    """
    splits = [split for split in evaluation.splits if split in set(frame["split"])]
    if not splits:
        return None
    style = predictor_styles(evaluation.predictors)
    figure, axes = panels(len(splits), columns=4, height=height, sharex=True, sharey=sharey)
    for panel, split in zip(axes, splits, strict=True):
        if under is not None:
            under(panel)
        for name in select_leaders(evaluation.ranking(), 3):
            curve = frame[(frame["split"] == split) & (frame["predictor"] == name)]
            panel.plot(curve[x], curve[y], label=replace_underscores(name), linewidth=1, **style[name])
        panel.set_title(split_label(split))
    return figure, axes


_PAPER = "#ffffff"


def load_plot(name: str) -> Callable[[Evaluation], Figure | None]:
    """Return the function that draws a plot. Raises: UserError when there is no plot of this name."""
    return plot_entry(name).draw


def draw_svg(evaluation: Evaluation, name: str, labels: Mapping[str, str] | None = None) -> str | None:
    """Return one plot as SVG, or None when it does not apply to this evaluation; equal input gives equal text.

    `labels` are the display names of predictors.
    Raises: UserError when there is no plot of this name.
    """
    draw = load_plot(name)
    with matplotlib.rc_context(STYLE):
        figure = draw(evaluation)
        if figure is None:
            return None
        names = {replace_underscores(name): predictor_label(name, labels or {}) for name in evaluation.predictors}
        _use_display_names(figure, names)
        return to_svg(figure, plot_entry(name).title)


class _Replaced(Formatter):
    """Labels of ticks, each replaced by a function."""

    def __init__(self, labels: Formatter, replaced: Callable[[str], str]) -> None:
        self.labels, self.replaced = labels, replaced

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of one tick."""
        return self.replaced(self.labels(x, pos))


def _use_display_names(figure: Figure, names: Mapping[str, str]) -> None:
    """Replace names of predictors in the texts of a plot: alone, before a number, or before a comma and one word."""
    pattern = re.compile(rf"^({'|'.join(map(re.escape, names))})(?=$| +\d+$|, [a-z]+$)")

    def replaced(text: str) -> str:
        return pattern.sub(lambda match: names[match[1]], text)

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_locator(), FixedLocator):
                axis.set_major_formatter(_Replaced(axis.get_major_formatter(), replaced))
    for text in figure.findobj(Text):
        text.set_text(replaced(text.get_text()))


def to_svg(figure: Figure, title: str) -> str:
    """Return a plot drawn with STYLE as SVG, without dates; equal plots give equal text."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    return _compact(buffer.getvalue())


def _compact(svg: str) -> str:
    """Return SVG with coordinates to a hundredth of a point and no trailing spaces: smaller, and looks the same."""

    def rounded(attribute: re.Match[str]) -> str:
        return re.sub(r"(\.\d\d)\d+", r"\1", attribute.group())

    text = re.sub(r' (?:d|x|y)="[^"]*"', rounded, svg)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def draw_all(
    evaluation: Evaluation, folder: Path, names: Iterable[str], labels: Mapping[str, str] | None = None
) -> list[str]:
    """Write <folder>/<name>.svg for every named plot that applies, and return the names of those.

    The folder is replaced as a whole, so no plot of an earlier run stays.
    """
    drawn = []
    with atomic_folder(folder) as temporary:
        for name in names:
            text = draw_svg(evaluation, name, labels)
            if text is not None:
                write_text(temporary / f"{name}.svg", seal_text(text))
                drawn.append(name)
    return drawn


def inline_svg(svg: str, *, prefix: str, label: str) -> str:
    """Return one matplotlib SVG as an element for an HTML page.

    The XML declaration, document type and metadata go; every id and reference gets `prefix`, so that several plots
    can share a page; ink becomes the page's text color and white areas become transparent, so that a plot follows
    a dark page; `label` is the text for screen readers.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<title>.*?</title>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    body = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', body)
    body = body.replace(INK, "currentColor").replace(f"fill: {_PAPER}", "fill: none")
    body = re.sub(r"\s*\n\s*", "\n", body).strip()
    opening = re.match(r"<svg[^>]*>", body)
    if opening is None:
        raise ValueError("the text is not SVG")
    box = re.search(r'viewBox="[^"]*"', opening.group())
    view = box.group() if box else ""
    return f'<svg class="figure" role="img" aria-label="{escape(label)}" {view}>{body[opening.end() :]}'
