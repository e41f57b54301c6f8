"""Training and what models read: losses, amounts of training data, and importance of groups."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.drawing import (
    declare_plot,
    legend_below,
    panels,
    plain_axis,
    predictor_styles,
    rank_on_split,
    select_leaders,
    whole_numbers,
)
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
                label = f"{evaluation.label(str(predictor))}, {'training' if loss == 'train_loss' else 'validation'}"
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


_SHOWN = 4


@declare_plot(
    "Importance of feature groups",
    "Increase of the error of the first fold's model, in percentage points, when all columns of a group are "
    "shuffled together among the test rows of a task (grouped permutation importance), for the best predictors "
    "of each split. Groups share information, so the bars do not add up.",
)
def group_importance(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split; None without importances."""
    importance = evaluation.tables["importance"]
    if importance.empty:
        return None
    style = predictor_styles(evaluation.predictors)
    splits = [split for split in evaluation.splits if split in set(importance["split"])]
    figure, axes = panels(len(splits), columns=4, height=2.6)
    groups = sorted(set(importance["group"]))
    for panel, split in zip(axes, splits, strict=True):
        part = importance[importance["split"] == split]
        shown = select_leaders(rank_on_split(evaluation, split, set(part["predictor"])), _SHOWN)
        width = 0.8 / len(shown)
        for number, predictor in enumerate(shown):
            mine = part[part["predictor"] == predictor].set_index("group")["increase"].reindex(groups)
            positions = [position + (number - (len(shown) - 1) / 2) * width for position in range(len(groups))]
            panel.barh(
                positions, mine, height=width, color=style[predictor]["color"], label=evaluation.label(predictor)
            )
        panel.set_yticks(range(len(groups)), groups if panel is axes[0] else [""] * len(groups))
        panel.invert_yaxis()
        panel.set_xscale("symlog", linthresh=1)
        plain_axis(panel, "x")
        panel.set_title(split_label(split))
        panel.set_xlabel("increase of error, points")
    legend_below(figure, axes[0])
    return figure
