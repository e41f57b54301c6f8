"""Prediction intervals: coverage and width, coverage by level, and places in the predictive distribution."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import (
    MUTED,
    WIDTH,
    draw_curves,
    draw_dot,
    legend_below,
    plain_axis,
    predictor_styles,
)
from perfcast.schema.display_names import metric_label, replace_underscores
from perfcast.splits import split_label


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
    order = evaluation.ranking()
    figure = Figure(figsize=(WIDTH, 0.4 * len(order) + 1.8), layout="constrained")
    axes = figure.subplots(2, len(splits), squeeze=False, sharey=True, sharex="row")
    for column, split in enumerate(splits):
        for metric, panel in zip(("coverage", "width"), axes[:, column], strict=True):
            _panel(evaluation, panel, split, metric)
            plain_axis(panel, "x", unit=" %", log=metric == "width")
        axes[1, column].xaxis.set_major_locator(LogLocator())
        axes[0, column].set_title(split_label(split))
        axes[0, column].axvline(100 * evaluation.level, color=MUTED, linestyle="--", linewidth=1)
    for panel, metric in zip(axes[:, 0], ("coverage", "width"), strict=True):
        panel.set_yticks(range(len(order)), [replace_underscores(name) for name in order])
        panel.set_ylim(len(order) - 0.4, -0.8)
        panel.set_ylabel(metric_label(metric, short=True))
    return figure


def _panel(evaluation: Evaluation, panel: Axes, split: str, metric: str) -> None:
    style = predictor_styles(evaluation.ranking())
    panel.grid(visible=False, axis="y")
    for position, predictor in enumerate(evaluation.ranking()):
        row = evaluation.value(split, predictor, metric=metric)
        if row is None or not np.isfinite(row["value"]):
            continue
        label = f"{row['value']:.0f}" if row["value"] >= 100 else f"{row['value']:.3g}"
        draw_dot(panel, row, position, label, style[predictor])


@declare_plot(
    "Calibration of prediction intervals",
    "Share of the measured scores inside intervals of 50 to 99 %, averaged over tasks, for the best predictors "
    "and the baseline. On the dashed line the coverage equals the level. Above it intervals are wider than "
    "needed; below it they are too narrow.",
)
def reliability(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, the level along x; None without intervals."""
    curves = draw_curves(evaluation, evaluation.tables["levels"], "level", "coverage", sharey=True, under=_diagonal)
    if curves is None:
        return None
    figure, axes = curves
    for panel in axes:
        panel.set_xlabel("level")
        panel.set_xlim(48, 101)
        for which in ("x", "y"):
            plain_axis(panel, which, unit=" %")
    axes[0].set_ylabel("coverage")
    legend_below(figure, axes[0])
    return figure


def _diagonal(panel: Axes) -> None:
    panel.plot([50, 100], [50, 100], color=MUTED, linestyle="--", linewidth=1)


@declare_plot(
    "Place of measured scores in their predictive distribution",
    "Share of the measured scores in every tenth of their predictive distribution (probability integral transform), "
    "averaged over tasks, for the best predictors and the baseline. On the dashed line the distribution is right. "
    "Many scores at both ends: intervals are too narrow; in the middle: too wide; at one end: predictions are biased.",
)
def pit_histogram(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, the tenths along x; None without intervals."""
    shares = 100 * evaluation.tables["pit"].groupby(["split", "predictor", "from"])["share"].mean()
    frame = shares.reset_index()
    frame["place"] = 100 * (frame["from"] + 0.05)
    curves = draw_curves(evaluation, frame, "place", "share", sharey=True, under=_tenth)
    if curves is None:
        return None
    figure, axes = curves
    for panel in axes:
        panel.set_xlabel("place in the distribution")
        for which in ("x", "y"):
            plain_axis(panel, which, unit=" %")
    axes[0].set_ylabel("share of scores")
    legend_below(figure, axes[0])
    return figure


def _tenth(panel: Axes) -> None:
    panel.axhline(10, color=MUTED, linestyle="--", linewidth=1)
