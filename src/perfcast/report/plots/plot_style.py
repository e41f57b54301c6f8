"""Style of all plots: colors, marks, axes and legends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from perfcast.evaluation import BASELINE

INK = "#1f2328"
MUTED = "#767e87"
"""Color of secondary text and lines, readable on white and on near-black."""
# Okabe and Ito, "Color universal design" (2008), without black and yellow, which vanish on one of the backgrounds.
_PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#9467bd")
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
WIDTH = 8.6
"""Width of every plot in inches."""


def predictor_styles(predictors: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return a color and a mark for each predictor, the same in every plot of one evaluation.

    The baseline is gray. Marks differ too, so that color is never the only difference.
    """
    names = sorted(name for name in predictors if name != BASELINE)
    styles: dict[str, dict[str, Any]] = {
        name: {"color": _PALETTE[index % len(_PALETTE)], "marker": _MARKS[index % len(_MARKS)]}
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
    """Label one axis ("x" or "y") with plain decimals; a logarithmic one at 1, 2 and 5 times powers of ten."""
    axis = getattr(axes, f"{which}axis")
    if log:
        getattr(axes, f"set_{which}scale")("log")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{unit}"))


def whole_numbers(axes: Axes, which: str) -> None:
    """Put ticks of one axis at whole numbers only."""
    getattr(axes, f"{which}axis").set_major_locator(MaxNLocator(nbins=6, integer=True))


def legend_below(figure: Figure, axes: Axes) -> None:
    """Put one legend for all panels below the figure."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)))
