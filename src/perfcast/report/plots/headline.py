"""Error of every predictor on every split."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import MUTED, panels, plain_axis, predictor_styles
from perfcast.schema.display_names import metric_label, replace_underscores
from perfcast.splits import split_label


@declare_plot(
    "Error of every predictor on every split",
    "Mean absolute error, in % of the measured score (MAPE) or in points of a share, averaged over tasks, with 95 % "
    "bootstrap intervals clustered by entity. Further left is better; the scale is logarithmic. The dashed line is "
    "the noise floor: the error that remains when the expected result of every configuration is known.",
)
def headline(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, one dot per predictor."""
    order = evaluation.ranking()
    style = predictor_styles(order)
    height = 0.24 * len(order) + 0.9
    figure, axes = panels(len(evaluation.splits), columns=4, height=height, sharey=True, sharex=True)
    noise = evaluation.tables["noise"]
    floor = noise.loc[(noise["task"] == AVERAGE) & (evaluation.error_unit == "%"), "mape_floor"]
    for panel, split in zip(axes, evaluation.splits, strict=True):
        for position, predictor in enumerate(order):
            row = evaluation.value(split, predictor)
            if row is None:
                continue
            if np.isfinite(row["low"]):
                panel.plot([row["low"], row["high"]], [position] * 2, color=style[predictor]["color"])
            panel.plot(row["value"], position, linestyle="none", **style[predictor])
            label = f"{row['value']:.2g}" if row["value"] < 10 else f"{row['value']:.0f}"
            panel.annotate(
                label, (row["value"], position), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=7
            )
        if len(floor) and floor.iloc[0] > 0:
            panel.axvline(floor.iloc[0], color=MUTED, linestyle="--", linewidth=1)
            if panel is axes[0]:
                at = (floor.iloc[0], -0.75)
                panel.annotate(" noise floor", at, va="top", fontsize=6.5, color=MUTED)
        plain_axis(panel, "x", unit=f" {evaluation.error_unit}", log=True)
        panel.set_title(split_label(split))
        panel.grid(visible=False, axis="y")
    axes[0].set_yticks(range(len(order)), [replace_underscores(name) for name in order])
    axes[0].set_ylim(len(order) - 0.4, -0.8)
    figure.supxlabel(metric_label(evaluation.error_metrics[0], short=True), fontsize=8.5)
    return figure
