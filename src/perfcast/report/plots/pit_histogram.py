"""Histogram of the probability integral transform."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import MUTED, legend_below, panels, plain_axis, predictor_styles, select_leaders
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import split_label

_PREDICTORS = 3


@declare_plot(
    "Place of measured scores in their predictive distribution",
    "Share of the measured scores in every tenth of their predictive distribution (probability integral transform), "
    "averaged over tasks, for the best predictors and the baseline. On the dashed line the distribution is right. "
    "Many scores at both ends: intervals are too narrow; in the middle: too wide; at one end: predictions are biased.",
)
def pit_histogram(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, the tenths along x; None without intervals."""
    histograms = evaluation.tables["pit"]
    if histograms.empty:
        return None
    style = predictor_styles(evaluation.predictors)
    splits = [split for split in evaluation.splits if split in set(histograms["split"])]
    figure, axes = panels(len(splits), columns=4, height=2.5, sharex=True, sharey=True)
    for panel, split in zip(axes, splits, strict=True):
        panel.axhline(10, color=MUTED, linestyle="--", linewidth=1)
        for predictor in select_leaders(evaluation.ranking(), _PREDICTORS):
            part = histograms[(histograms["split"] == split) & (histograms["predictor"] == predictor)]
            shares = 100 * part.groupby("from")["share"].mean()
            panel.plot(
                100 * (shares.index + 0.05),
                shares,
                label=replace_underscores(predictor),
                linewidth=1,
                **style[predictor],
            )
        panel.set_title(split_label(split))
        panel.set_xlabel("place in the distribution")
        for which in ("x", "y"):
            plain_axis(panel, which, unit=" %")
    axes[0].set_ylabel("share of scores")
    legend_below(figure, axes[0])
    return figure
