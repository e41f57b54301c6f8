"""Errors and intervals: of every predictor and split, by year and slice, and predictions beside measurements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.evaluation.run_predictions import YEAR
from perfcast.report.plots.drawing import (
    INK,
    MUTED,
    WIDTH,
    declare_plot,
    draw_dots,
    legend_below,
    panels,
    plain_axis,
    predictor_styles,
    select_leaders,
)
from perfcast.schema.display_names import column_label, metric_label
from perfcast.splits import split_label

_VALUES = 14
_LETTERS = 26
_SOME = 0.9
_MANY = 1.8
_VERY_MANY = 3.2
"""Decades of a narrow axis above which its labels would touch."""


@declare_plot(
    "Error of every predictor on every split",
    "Mean absolute error, in % of the measured score (MAPE) or in points of a share, averaged over tasks, with 95 % "
    "bootstrap intervals clustered by entity. Further left is better; the scale is logarithmic. The dashed line is "
    "the noise floor: the error that remains when the expected result of every configuration is known.",
)
def headline(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, one dot per predictor."""
    height = 0.24 * len(evaluation.predictors) + 0.9
    figure, axes = panels(len(evaluation.splits), columns=4, height=height, sharey=True, sharex=True)
    is_shown = (evaluation.tables["noise"]["task"] == AVERAGE) & (evaluation.error_unit == "%")
    floor = evaluation.tables["noise"].loc[is_shown, "mape_floor"]
    for panel, split in zip(axes, evaluation.splits, strict=True):
        draw_dots(panel, evaluation, split)
        if len(floor) and floor.iloc[0] > 0:
            panel.axvline(floor.iloc[0], color=MUTED, linestyle="--", linewidth=1)
            if panel is axes[0]:
                at = (floor.iloc[0], -0.75)
                panel.annotate(" noise floor", at, va="top", fontsize=6.5, color=MUTED)
        plain_axis(panel, "x", unit=f" {evaluation.error_unit}", log=True)
        panel.set_title(split_label(split))
    figure.supxlabel(metric_label(evaluation.error_metrics[0], short=True), fontsize=8.5)
    return figure


@declare_plot(
    "Error by year of publication",
    "MAPE of the best predictors and the baseline over the test rows of each year, all tasks together, with 95 "
    "% intervals clustered by entity. Below each year: test results.",
)
def error_by_year(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split with several years, years along x; None when there is no such split."""
    rows = evaluation.tables["slices"][evaluation.tables["slices"]["slice"] == YEAR]
    predictors = select_leaders(evaluation.ranking(), 3)
    style = predictor_styles(evaluation.predictors)
    years_of = rows.groupby("split")["value"].nunique().to_dict()
    splits = [split for split in evaluation.splits if years_of.get(split, 0) > 1]
    if not splits:
        return None
    figure, axes = panels(len(splits), columns=2, height=2.3)
    for panel, split in zip(axes, splits, strict=True):
        part = rows[rows["split"] == split]
        years = sorted(set(part["value"]))
        counts = part.drop_duplicates("value").set_index("value")["rows"]
        for shift, predictor in enumerate(predictors):
            mine = part[part["predictor"] == predictor].set_index("value").reindex(years)
            middle = [index + 0.08 * (shift - (len(predictors) - 1) / 2) for index in range(len(years))]
            panel.vlines(middle, mine["low"], mine["high"], color=style[predictor]["color"], alpha=0.6)
            panel.plot(middle, mine["mape"], label=evaluation.label(predictor), linewidth=1, **style[predictor])
        panel.set_title(split_label(split))
        panel.set_xticks(range(len(years)), [f"{year}\n{counts[year]:,}" for year in years], fontsize=7.5)
        panel.set_xlim(-0.5, len(years) - 0.5)
        panel.set_ylim(bottom=0)
        plain_axis(panel, "y", unit=" %")
    legend_below(figure, axes[0])
    return figure


@declare_plot(
    "Error by vendor",
    "Mean error of the best predictors and the baseline for the vendors with the most test rows, all tasks together, "
    "with 95 % intervals clustered by entity. The scale is logarithmic. Gray numbers on the right: test results.",
)
def error_by_vendor(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per vendor column and split; None when the dataset declares none."""
    return _draw_slices(evaluation, evaluation.vendor_slices)


def _draw_slices(evaluation: Evaluation, names: Sequence[str]) -> Figure | None:
    """Draw errors by the most frequent values of each named slice, splits side by side; None when there is no slice."""
    rows = evaluation.tables["slices"]
    rows = rows[rows["slice"].isin(names)]
    if rows.empty:
        return None
    values = {name: _frequent(evaluation, name) for name in names}
    splits = [split for split in evaluation.splits if split in set(rows["split"])]
    predictors = select_leaders(evaluation.ranking(), 2)
    heights = [len(values[name]) + 2.2 for name in names]
    figure = Figure(figsize=(WIDTH, 0.21 * sum(heights) + 0.6), layout="constrained")
    grid = figure.subplots(len(names), len(splits), squeeze=False, sharey="row", sharex="col", height_ratios=heights)
    style = predictor_styles(evaluation.predictors)
    for line, name in enumerate(names):
        for column, split in enumerate(splits):
            panel = grid[line][column]
            part = rows[(rows["slice"] == name) & (rows["split"] == split)]
            for predictor in predictors:
                mine = part[part["predictor"] == predictor].set_index("value").reindex(values[name])
                positions = range(len(mine))
                panel.hlines(positions, mine["low"], mine["high"], color=style[predictor]["color"], alpha=0.5)
                look = {"linestyle": "none", "label": evaluation.label(predictor), **style[predictor]}
                panel.plot(mine[evaluation.error_metrics[0]], positions, **look)
            counts = part.drop_duplicates("value").set_index("value")["rows"]
            look = {"ha": "right", "va": "center", "fontsize": 6.5, "color": MUTED}
            for position, value in enumerate(values[name]):
                shown = f"{counts.get(value, 0):,}"
                place = panel.get_yaxis_transform()
                panel.annotate(shown, (1.0, position), xycoords=place, **look)
            panel.set_ylim(len(mine) - 0.4, -0.6)
            plain_axis(panel, "x", unit=f" {evaluation.error_unit}", log=True)
            panel.margins(x=0.2)
            if line == 0:
                panel.set_title(split_label(split))
        grid[line][0].set_yticks(range(len(values[name])), [_short(value) for value in values[name]])
        grid[line][0].set_ylabel(column_label(name), color=INK)
    for panel in grid[-1]:
        _thin_out(panel)
    legend_below(figure, grid[0][0])
    return figure


def _thin_out(panel: Axes) -> None:
    """Leave only as many ticks on a narrow logarithmic axis as there is room for labels."""
    low, high = panel.get_xlim()
    decades = np.log10(high / low)
    base = 100 if decades > _VERY_MANY else 10
    panel.xaxis.set_major_locator(
        LogLocator(base, subs=(1,) if decades > _MANY else (1, 3) if decades > _SOME else (1, 2, 5))
    )


def _frequent(evaluation: Evaluation, name: str) -> list[str]:
    """Return the values of a slice that most test rows have, most frequent first, then by name."""
    rows = evaluation.tables["slices"]
    rows = rows[rows["slice"] == name]
    counts = rows.drop_duplicates(["split", "value"]).groupby("value")["rows"].sum()
    return [str(value) for value in counts.sort_index().sort_values(ascending=False, kind="stable").index[:_VALUES]]


def _short(value: str) -> str:
    return value if len(value) <= _LETTERS else value[: _LETTERS - 1].rstrip() + "…"


_CELLS = 90
"""Hexagons across all panels of a square arrangement, which bounds the size of the file."""
# The middle of viridis: its ends vanish on white and on near-black pages.
_COLORS = ListedColormap(colormaps["viridis_r"](np.linspace(0.1, 0.75, 64)))


@declare_plot(
    "Measured and predicted scores",
    "Every test row of every split, both scales logarithmic; a darker cell holds more rows. On the line, the "
    "prediction equals the measurement. Rows of panels are the best predictors and the baseline. Predictions of "
    "several seeds are averaged.",
)
def measured_against_predicted(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split and predictor, rows counted in hexagons to keep the file small."""
    splits = evaluation.splits
    predictors = select_leaders(evaluation.ranking(), 2)
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
            extent = (np.log10(low), np.log10(high)) * 2
            look = {"mincnt": 1, "cmap": _COLORS, "edgecolors": "none", "linewidths": 0}
            scales = dict.fromkeys(("xscale", "yscale", "bins"), "log")
            panel.hexbin(points["measured"], predicted, gridsize=cells, extent=extent, **scales, **look)
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


@declare_plot(
    "Coverage and width of prediction intervals",
    "Above: coverage, the share of measured scores inside their prediction interval, averaged over tasks, with "
    "95 % bootstrap intervals clustered by entity. The dashed line is the level of the intervals. Below: median "
    "width in % of the prediction; narrower is better where the coverage is right.",
)
def coverage(evaluation: Evaluation) -> Figure | None:
    """Draw two rows of panels, one column per split, one dot per predictor; None without intervals."""
    rows = evaluation.metrics[(evaluation.metrics["task"] == AVERAGE) & (evaluation.metrics["metric"] == "coverage")]
    splits = [split for split in evaluation.splits if rows.loc[rows["split"] == split, "value"].notna().any()]
    if not splits:
        return None
    figure = Figure(figsize=(WIDTH, 0.4 * len(evaluation.predictors) + 1.8), layout="constrained")
    axes = figure.subplots(2, len(splits), squeeze=False, sharey=True, sharex="row")
    for column, split in enumerate(splits):
        for metric, panel in zip(("coverage", "width"), axes[:, column], strict=True):
            draw_dots(panel, evaluation, split, metric, digits=3)
            plain_axis(panel, "x", unit=" %", log=metric == "width")
        axes[1, column].xaxis.set_major_locator(LogLocator())
        axes[0, column].set_title(split_label(split))
        axes[0, column].axvline(100 * evaluation.level, color=MUTED, linestyle="--", linewidth=1)
    for panel, metric in zip(axes[:, 0], ("coverage", "width"), strict=True):
        panel.set_ylabel(metric_label(metric, short=True))
    return figure
