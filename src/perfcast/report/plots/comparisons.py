"""Comparisons: predictors with each other, with published values, and predictions with measurements."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.plots.drawing import (
    INK,
    MUTED,
    WIDTH,
    declare_plot,
    legend_below,
    panels,
    plain_axis,
    predictor_styles,
    rank_on_split,
    select_leaders,
)
from perfcast.schema.display_names import metric_label
from perfcast.schema.metric_names import METRICS, PERCENT
from perfcast.splits import split_label

_EDGES = (1.0, 5.0)
_FILL = "#0072b2"
_STRENGTHS = (0.18, 0.38, 0.62)
_MAX_NUMBERS = 12
"""Predictors up to which a cell has room for its number."""
_LINE = 160
"""Characters of a line of small print."""
_CELLS = 90
"""Hexagons across all panels of a square arrangement, which bounds the size of the file."""
# The middle of viridis: its ends vanish on white and on near-black pages.
_COLORS = ListedColormap(colormaps["viridis_r"](np.linspace(0.1, 0.75, 64)))


@declare_plot(
    "Clear differences between predictors",
    "Difference of the mean error, averaged over tasks, in percentage points: predictor of the row minus predictor of "
    "the column. In each panel the best predictor is number 1. Filled: a clear "
    "difference, with at most 5 % risk of any false claim among all pairs of the panel (step-down test on the "
    "largest studentized difference, bootstrap resamples clustered by entity). Open: no clear difference.",
)
def pairwise(evaluation: Evaluation) -> Figure | None:
    """Draw one triangle of pairs per split, predictors in the order of the split; None without any pair."""
    known = evaluation.tables["pairs"][
        (evaluation.tables["pairs"]["task"] == AVERAGE)
        & (evaluation.tables["pairs"]["metric"] == evaluation.error_metrics[0])
        & evaluation.tables["pairs"]["p_family"].notna()
    ]
    orders = {}
    for split in evaluation.splits:
        rows = known[known["split"] == split]
        orders[split] = rank_on_split(evaluation, split, {*rows["predictor"], *rows["other"]})
    orders = {split: order for split, order in orders.items() if len(order) > 1}
    if not orders:
        return None
    size = max(map(len, orders.values()))
    height = min(0.5 * WIDTH, 0.27 * size + 0.9 if size <= _MAX_NUMBERS else 0.16 * size + 0.6)
    figure, axes = panels(len(orders), columns=2, height=height)
    figure.set_figheight(figure.get_figheight() + 0.4)
    for panel, (split, order) in zip(axes, orders.items(), strict=True):
        labels = list(map(evaluation.label, order))
        _triangle(panel, order, labels, known[known["split"] == split], numbers=size <= _MAX_NUMBERS)
        panel.set_title(split_label(split))
    _legend(figure)
    return figure


def _triangle(panel: Axes, order: list[str], labels: list[str], pairs: pd.DataFrame, *, numbers: bool) -> None:
    positions = {name: position for position, name in enumerate(order)}
    cells: dict[int | None, list[Path]] = {}
    for row in pairs[pairs["predictor"].isin(order) & pairs["other"].isin(order)].to_dict("records"):
        column, line = sorted((positions[row["predictor"]], positions[row["other"]]))
        size, is_clear = abs(row["difference"]), row["claim"] != "undecided"
        strength = int(np.searchsorted(_EDGES, size, side="right")) if is_clear else None
        half = 0.46 if is_clear else 0.44 if numbers else 0.24
        cells.setdefault(strength, []).append(_square(column, line, half))
        if numbers:
            text = f"{size:.2f}" if size < 1 else f"{size:.1f}" if size < 10 else f"{size:.0f}"
            ink = INK if is_clear else MUTED
            panel.annotate(text, (column, line), ha="center", va="center", fontsize=7, color=ink)
    for strength, squares in cells.items():
        panel.add_patch(PathPatch(Path.make_compound_path(*squares), **_look(strength)))
    panel.set_yticks(range(len(order)), [f"{label}  {place + 1}" for place, label in enumerate(labels)])
    shown = range(0, len(order) - 1, 1 if numbers else 2)
    panel.set_xticks(shown, [str(place + 1) for place in shown])
    panel.tick_params(length=0, labelsize=8.5 if numbers else 7)
    panel.set_xlim(-0.55, len(order) - 1.45)
    panel.set_ylim(len(order) - 0.45, -0.55)
    panel.grid(visible=False)
    for side in ("left", "bottom"):
        panel.spines[side].set_visible(False)


def _square(x: float, y: float, half: float) -> Path:
    corners = ((x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half))
    return Path([*corners, corners[0]], closed=True)


def _look(strength: int | None) -> dict[str, Any]:
    """Return the style of cells with a clear difference of this strength, or of cells without one."""
    if strength is None:
        return {"fill": False, "edgecolor": MUTED, "linewidth": 0.6}
    return {"facecolor": _FILL, "alpha": _STRENGTHS[strength], "linewidth": 0}


def _legend(figure: Figure) -> None:
    low, high = _EDGES
    labels = {
        0: f"clear difference below {low:g}",
        1: f"{low:g} to {high:g}",
        2: f"more than {high:g} points",
        None: "no clear difference",
    }
    handles = [Patch(label=label, **_look(strength)) for strength, label in labels.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


@declare_plot(
    "Comparison with published values",
    "Errors and other metrics that others published, beside every predictor by task, metric and split. Errors "
    "are on a logarithmic scale, and further left is better. For R², rank correlations and shares of pairs, "
    "further right is better; values below the axis are drawn at its left end. The dashed line is the published "
    "value, on rows drawn like those of the split named beside it. Filled marks are that split, and only they "
    "compare with the line. Open marks are splits whose test machines are new; the distance between open and "
    "filled marks is what the published value does not show.",
)
def published_comparison(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per task and metric published; None when there is none, or none of the splits was run."""
    published = evaluation.tables["published"][evaluation.tables["published"]["split"].isin(evaluation.splits)]
    outputs = [
        (task, metric)
        for metric in METRICS
        for task in (*evaluation.tasks, AVERAGE)
        if ((published["task"] == task) & (published["metric"] == metric)).any()
    ]
    if not outputs:
        return None
    order = evaluation.ranking()
    same_scale = len({metric for _, metric in outputs}) == 1
    figure, axes = panels(len(outputs), columns=2, height=0.28 * len(order) + 1.2, sharex=same_scale, sharey=True)
    for panel, (task, metric) in zip(axes, outputs, strict=True):
        mine = published[(published["task"] == task) & (published["metric"] == metric)]
        unit = " %" if metric in PERCENT else ""
        lowest = -np.inf if metric in PERCENT else min(0.0, mine["value"].min())
        _draw_splits(panel, evaluation, (task, metric), set(mine["split"]), lowest)
        for row in mine.to_dict("records"):
            panel.axvline(row["value"], color=INK, linestyle="--", linewidth=1)
        plain_axis(panel, "x", unit=unit, log=metric in PERCENT)
        for row in mine.to_dict("records"):
            label = f" {row['what']}, {row['split']}: {row['value']:g}{unit} "
            at = panel.transAxes.inverted().transform(panel.transData.transform((row["value"], 0)))[0]
            side = "left" if at < 0.5 else "right"
            panel.annotate(label, (row["value"], -0.5), va="bottom", ha=side, fontsize=6.5, color=MUTED)
        panel.set_title(task if metric == "mape" else f"{task}: {metric_label(metric)}")
        panel.set_yticks(range(len(order)), list(map(evaluation.label, order)))
        panel.set_ylim(len(order) - 0.4, -1.3)
    sources = "Published: " + "; ".join(dict.fromkeys(published["citation"]))
    legend_below(figure, axes[0])
    figure.legends[0].set_title("\n".join(wrap(sources, _LINE)), FontProperties(size=6.5))
    return figure


def _draw_splits(
    panel: Axes, evaluation: Evaluation, output: tuple[str, str], compared: set[str], lowest: float
) -> None:
    """Draw one row per predictor and one mark per split, the compared ones filled and with their number."""
    order, style = evaluation.ranking(), predictor_styles(evaluation.splits)
    for split in evaluation.splits:
        rows = {name: evaluation.value(split, name, *output) for name in order}
        known = [(row["value"], name) for name, row in rows.items() if row is not None and np.isfinite(row["value"])]
        values, positions = [value for value, _ in known], [order.index(name) for _, name in known]
        face = style[split]["color"] if split in compared else "none"
        shown = np.maximum(values, lowest)
        panel.plot(shown, positions, linestyle="none", label=split_label(split), markerfacecolor=face, **style[split])
        for value, at in zip(values, zip(shown, positions, strict=True), strict=True) if split in compared else ():
            panel.annotate(f"{value:.2f}", at, xytext=(0, 4), textcoords="offset points", ha="center", fontsize=6.5)


@declare_plot(
    "Measured and predicted scores",
    "Every test row of every split, both scales logarithmic; a darker cell holds more rows. On the line, the "
    "prediction equals the measurement. Rows of panels are the best predictors and the baseline. Predictions of "
    "several seeds are averaged.",
)
def measured_against_predicted(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split and predictor, rows counted in hexagons to keep the file small."""
    splits, predictors = evaluation.splits, select_leaders(evaluation.ranking(), 2)
    side = (WIDTH - 0.6) / max(4, len(splits))
    figure = Figure(figsize=(WIDTH, 0.92 * side * len(predictors) + 0.5), layout="constrained")
    grid = figure.subplots(len(predictors), len(splits), squeeze=False, sharex="col", sharey="col")
    cells = int(_CELLS / np.sqrt(grid.size))
    for column, split in enumerate(splits):
        rows = evaluation.tables["points"][evaluation.tables["points"]["split"] == split]
        low, high = (float(extreme) for extreme in (rows["measured"].min() / 1.3, rows["measured"].max() * 1.3))
        for line, predictor in enumerate(predictors):
            panel = grid[line][column]
            points = rows[rows["predictor"] == predictor]
            # An estimate far outside the range of the measurements is drawn at the edge, not left out.
            predicted = points["predicted"].clip(low, high)
            panel.hexbin(
                points["measured"],
                predicted,
                gridsize=cells,
                xscale="log",
                yscale="log",
                extent=(np.log10(low), np.log10(high), np.log10(low), np.log10(high)),
                bins="log",
                mincnt=1,
                cmap=_COLORS,
                edgecolors="none",
                linewidths=0,
            )
            panel.plot([low, high], [low, high], color=MUTED, linewidth=0.8)
            panel.set(xlim=(low, high), ylim=(low, high), box_aspect=1)
            panel.minorticks_off()
            if line == 0:
                panel.set_title(split_label(split))
            if column == 0:
                panel.set_ylabel(evaluation.label(predictor), fontweight="bold")
    figure.supxlabel("measured score", fontsize=8.5)
    figure.supylabel("predicted score", fontsize=8.5)
    return figure
