"""Losses by epoch of the predictors that are trained in epochs."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import legend_below, panels, plain_axis, predictor_styles, whole_numbers
from perfcast.splits import split_label

_MIN_EPOCHS = 3


@declare_plot(
    "Training and validation loss",
    "Loss on the training rows (dashed) and on the validation rows of the training part (solid), by epoch: the "
    "mean over seeds and folds, with the range between them shaded. A predictor with fewer than three epochs is "
    "left out.",
)
def learning_curves(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split; None when no predictor has enough epochs for a curve."""
    history = evaluation.tables["history"]
    history = history[history.groupby(["split", "predictor"])["epoch"].transform("nunique") >= _MIN_EPOCHS]
    if history.empty:
        return None
    style = predictor_styles(evaluation.predictors)
    splits = [split for split in evaluation.splits if split in set(history["split"])]
    figure, axes = panels(len(splits), columns=4, height=2.3)
    for panel, split in zip(axes, splits, strict=True):
        part = history[history["split"] == split]
        for predictor, mine in part.groupby("predictor", sort=True):
            color = style[str(predictor)]["color"]
            for loss, line in (("train_loss", "--"), ("validation_loss", "-")):
                curve = mine.groupby("epoch")[loss].agg(["mean", "min", "max"]).dropna()
                label = f"{predictor}, {'training' if loss == 'train_loss' else 'validation'}"
                panel.plot(curve.index, curve["mean"], line, color=color, linewidth=1.2, label=label)
                panel.fill_between(curve.index, curve["min"], curve["max"], color=color, alpha=0.15, linewidth=0)
        losses = part[["train_loss", "validation_loss"]].to_numpy(dtype=float)
        if np.nanmin(losses) > 0:
            plain_axis(panel, "y", log=True)
        panel.set_title(split_label(split))
        panel.set_xlabel("epoch")
        whole_numbers(panel, "x")
    axes[0].set_ylabel("loss")
    legend_below(figure, axes[0])
    return figure
