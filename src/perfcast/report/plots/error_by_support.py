"""Errors by how well a machine is supported by what was seen."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.plot_style import few, legend_below, looks, panels, plain_axis

_PREDICTORS = 3


def draw(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, support along x; None without support."""
    if evaluation.support.empty:
        return None
    predictors = few(evaluation.ranking(), _PREDICTORS)
    style = looks(evaluation.predictors)
    splits = [split for split in evaluation.splits if split in set(evaluation.support["split"])]
    figure, axes = panels(len(splits), columns=4, height=2.4, sharex=True)
    for panel, split in zip(axes, splits, strict=True):
        for predictor in predictors:
            own = evaluation.support[
                (evaluation.support["split"] == split) & (evaluation.support["predictor"] == predictor)
            ]
            panel.plot(own["support"], own["mape"], label=predictor, linewidth=1, **style[predictor])
        panel.set_title(split)
        panel.set_xlim(0, 1)
        panel.set_xlabel("support")
        plain_axis(panel, "y", unit=" %", log=True)
    legend_below(figure, axes[0])
    return figure
