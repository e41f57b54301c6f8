"""Coverage and width of prediction intervals."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import MUTED, plain_axis, predictor_styles
from perfcast.report.plots.drawing import WIDTH as FIGURE_WIDTH
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
    figure = Figure(figsize=(FIGURE_WIDTH, 0.4 * len(order) + 1.8), layout="constrained")
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
        if np.isfinite(row["low"]):
            panel.plot([row["low"], row["high"]], [position] * 2, color=style[predictor]["color"])
        panel.plot(row["value"], position, linestyle="none", **style[predictor])
        label = f"{row['value']:.0f}" if row["value"] >= 100 else f"{row['value']:.3g}"
        panel.annotate(
            label, (row["value"], position), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=7
        )
