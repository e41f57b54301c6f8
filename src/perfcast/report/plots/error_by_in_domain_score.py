"""Errors by in-domain score."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import legend_below, panels, plain_axis, predictor_styles, select_leaders
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import split_label

_PREDICTORS = 3


@declare_plot(
    "Error by in-domain score",
    "MAPE of the best predictors and the baseline by in-domain score, all tasks together, on a logarithmic "
    "scale. Score 1: the training data has similar machines. Score 0.25: at such a distance from the training "
    "data, backtest errors were four times as large. An error that falls to the right means that the score "
    "shows in advance which predictions to trust.",
)
def error_by_in_domain_score(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, in-domain score along x; None without scores."""
    scores = evaluation.tables["in_domain"]
    if scores.empty:
        return None
    predictors = select_leaders(evaluation.ranking(), _PREDICTORS)
    style = predictor_styles(evaluation.predictors)
    splits = [split for split in evaluation.splits if split in set(scores["split"])]
    figure, axes = panels(len(splits), columns=4, height=2.4, sharex=True)
    for panel, split in zip(axes, splits, strict=True):
        for predictor in predictors:
            part = scores[(scores["split"] == split) & (scores["predictor"] == predictor)]
            panel.plot(
                part["in_domain_score"],
                part["mape"],
                label=replace_underscores(predictor),
                linewidth=1,
                **style[predictor],
            )
        panel.set_title(split_label(split))
        panel.set_xlim(0, 1)
        panel.set_xlabel("in-domain score")
        plain_axis(panel, "y", unit=" %", log=True)
    legend_below(figure, axes[0])
    return figure
