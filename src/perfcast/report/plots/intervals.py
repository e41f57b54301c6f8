"""Prediction intervals: coverage and width, coverage by level, and places in the predictive distribution."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.plots.drawing import MUTED, WIDTH, declare_plot, draw_curves, draw_dots, plain_axis
from perfcast.schema.display_names import metric_label
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


@declare_plot(
    "Calibration of prediction intervals",
    "Share of the measured scores inside intervals of 50 to 99 %, averaged over tasks, for the best predictors "
    "and the baseline. On the dashed line the coverage equals the level. Above it intervals are wider than "
    "needed; below it they are too narrow.",
)
def reliability(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, the level along x; None without intervals."""
    return draw_curves(
        evaluation,
        evaluation.tables["levels"],
        *("level", "coverage", "level"),
        ylabel="coverage",
        xlim=(48, 101),
        under=lambda panel: panel.plot([50, 100], [50, 100], color=MUTED, linestyle="--", linewidth=1),
    )


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
    return draw_curves(
        evaluation,
        frame,
        *("place", "share", "place in the distribution"),
        ylabel="share of scores",
        under=lambda panel: panel.axhline(10, color=MUTED, linestyle="--", linewidth=1),
    )
