"""Declarations of the plots, their style, and their output as SVG and in an HTML page.

A plot is a function `<name>(evaluation) -> Figure | None` declared by `declare_plot`. To add one, add a function to a
module of this package, or a module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import matplotlib
import numpy as np
from matplotlib import rc_params_from_file
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from perfcast import plugins
from perfcast.evaluation import BASELINE, Evaluation
from perfcast.utils.errors import unknown_name
from perfcast.utils.io import atomic_folder, write_text

INK = "#1f2328"
MUTED = "#767e87"
"""Color of secondary text and lines, readable on white and on near-black."""
# Okabe and Ito, "Color universal design" (2008), without black and yellow, which vanish on one of the backgrounds.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#9467bd")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "h")
STYLE = rc_params_from_file(Path(__file__).with_name("perfcast.mplstyle"), use_default_template=False)
_LINEAR_DECADES = 0.5
"""Decades below which a logarithmic axis has evenly spaced ticks, because too few round numbers lie on it."""
WIDTH = 8.6
"""Width of every plot in inches."""

Draw = TypeVar("Draw", bound=Callable[..., object])


@dataclass(frozen=True)
class PlotEntry:
    """One plot and the function that draws it."""

    name: str
    title: str
    caption: str
    draw: Callable[..., Any]


def declare_plot(title: str, caption: str) -> Callable[[Draw], Draw]:
    """Declare a function to be the plot of its name."""

    def attach(draw: Draw) -> Draw:
        vars(draw)["declaration"] = PlotEntry(draw.__name__, title, caption, draw)
        return draw

    return attach


@cache
def read_catalog() -> dict[str, PlotEntry]:
    """Return the plots by name."""
    return {name: draw.declaration for name, draw in plugins.declared("report.plots").items()}


def plot_entry(name: str) -> PlotEntry:
    """Return the entry of one plot. Raises: UserError when there is no plot of this name."""
    catalog = read_catalog()
    if name not in catalog:
        raise unknown_name("a name in plots", name, list(catalog))
    return catalog[name]


def plot_modules(names: Iterable[str]) -> list[str]:
    """Return the modules of the named plots, each once."""
    return list(dict.fromkeys(plot_entry(name).draw.__module__ for name in names))


def rst_captions(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return {plot: {"title": plain text, "caption": reStructuredText}} for the report of Snakemake."""
    return {name: {"title": plot_entry(name).title, "caption": _escape_rst(plot_entry(name).caption)} for name in names}


def _escape_rst(text: str) -> str:
    """Return plain text with the markup characters of reStructuredText escaped."""
    return re.sub(r"([\\*`|_<>])", r"\\\1", text)


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


def rank_on_split(evaluation: Evaluation, split: str, predictors: Iterable[str]) -> list[str]:
    """Return those of some predictors that have a run on a split, the smallest error first."""
    errors = {name: row["value"] for name in predictors if (row := evaluation.value(split, name)) is not None}
    return sorted(errors, key=lambda name: (errors[name], name))


def draw_dots(panel: Axes, evaluation: Evaluation, split: str, metric: str = "", digits: int = 2) -> None:
    """Draw a metric of every predictor with its interval, and its number above, predictors along y in their order."""
    order = evaluation.ranking()
    styles = predictor_styles(order)
    for position, name in enumerate(order):
        row = evaluation.value(split, name, metric=metric)
        if row is None or not np.isfinite(row["value"]):
            continue
        at = (row["value"], position)
        style = styles[name]
        if np.isfinite(row["low"]):
            panel.plot([row["low"], row["high"]], [position] * 2, color=style["color"])
        panel.plot(*at, linestyle="none", **style)
        label = f"{at[0]:.{digits}g}" if at[0] < 10 ** (digits - 1) else f"{at[0]:.0f}"
        panel.annotate(label, at, xytext=(0, 4), textcoords="offset points", ha="center", fontsize=7)
    panel.grid(visible=False, axis="y")
    panel.set_yticks(range(len(order)), list(map(evaluation.label, order)))
    panel.set_ylim(len(order) - 0.4, -0.8)


def draw_svg(evaluation: Evaluation, name: str, labels: Mapping[str, str] | None = None) -> str | None:
    """Return one plot as SVG, or None when it does not apply to this evaluation; equal input gives equal text.

    `labels` are the display names of predictors.
    Raises: UserError when there is no plot of this name.
    """
    entry = plot_entry(name)
    with matplotlib.rc_context(STYLE):
        figure = entry.draw(replace(evaluation, labels=labels or {}))
        return None if figure is None else to_svg(figure, entry.title)


def to_svg(figure: Figure, title: str) -> str:
    """Return a plot drawn with STYLE as SVG, without dates; equal plots give equal text."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    return _compact(_number_ids(buffer.getvalue()))


def _number_ids(svg: str) -> str:
    """Return SVG with numbers for the hashes in ids: Matplotlib hashes the last bits of coordinates too."""
    hashed = dict.fromkeys(re.findall(r'\bid="([^"]*[0-9a-f]{10})"', svg))
    numbered = {name: f"{name[:-10]}{number}" for number, name in enumerate(hashed)}

    def replace_name(use: re.Match[str]) -> str:
        return use[1] + numbered.get(use[2], use[2])

    return re.sub(r'(\bid="|url\(#|href="#)([^")]+)', replace_name, svg)


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
                write_text(temporary / f"{name}.svg", text)
                drawn.append(name)
    return drawn


def inline_svg(svg: str, *, prefix: str, label: str) -> str:
    """Return one matplotlib SVG as an element for an HTML page.

    The XML declaration, document type and metadata go; every id and reference gets `prefix`, so that several plots
    can share a page; ink becomes the page's text color and white areas become transparent, so that a plot follows
    a dark page; `label` is the text for screen readers.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<(metadata|title|style)\b[^>]*>.*?</\1>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    body = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', body)
    body = body.replace(INK, "currentColor").replace("fill: #ffffff", "fill: none")
    opening, content = re.sub(r"\s*\n\s*", "\n", body).strip().split(">", 1)
    box = re.search(r'viewBox="[^"]*"', opening)
    return f'<svg class="figure" role="img" aria-label="{escape(label)}" {box.group() if box else ""}>{content}'
