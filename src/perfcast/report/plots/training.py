"""Training and what models read: losses, amounts of training data, and importance of groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

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
from perfcast.splits import learning_curve_point, split_label
from perfcast.splits.declaration import LearningCurvePoint

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


@declare_plot(
    "Error by size of the training data",
    "MAPE, averaged over tasks, after training on a share of the training rows, and on all of them. Both scales "
    "are logarithmic. Whole groups are drawn once, and each share contains the smaller ones; validation rows "
    "shrink alike. Bands are 95 % bootstrap intervals clustered by entity. Test rows and hyperparameters are "
    "the same along a line, so differences along a line are more certain than the bands suggest.",
)
def training_size(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, shares of the training rows along x; None without such learning-curve splits."""

    def scale(panel: Axes, amounts: list[float], is_whole: bool) -> None:
        del is_whole
        panel.set_xscale("log")
        panel.set_xticks(amounts, [f"{100 * amount:g} %" for amount in amounts])
        panel.xaxis.set_minor_locator(NullLocator())

    return _draw_amounts(evaluation, "share of the training rows", lambda form: form.share, lambda _: 1.0, scale)


@declare_plot(
    "Error by years of training history",
    "MAPE, averaged over tasks, after training on the last years before the cut-off date only, and on all "
    "years. The scale is logarithmic. Bands are 95 % bootstrap intervals clustered by entity. Test rows and "
    "hyperparameters are the same along a line, so differences along a line are more certain than the bands "
    "suggest. The validation rows are the last quarter of the years, at most twelve months.",
)
def history(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, years of training along x; None without such learning-curve splits."""
    # all of history has no place on a scale of years: it is drawn one step after the longest
    label = "last years before the cut-off date"

    def scale(panel: Axes, amounts: list[float], is_whole: bool) -> None:
        ticks = [f"{amount:g}" for amount in amounts]
        panel.set_xticks(amounts, [*ticks[:-1], "all"] if is_whole else ticks)

    return _draw_amounts(evaluation, label, lambda form: form.years, lambda longest: longest + 1, scale)


def _draw_amounts(
    evaluation: Evaluation,
    label: str,
    amount_of: Callable[[LearningCurvePoint], float | None],
    whole: Callable[[float], float],
    scale: Callable[[Axes, list[float], bool], None],
) -> Figure | None:
    """Draw one panel per split with learning-curve splits of a kind of amount, by increasing amount of training data.

    `whole` gives the amount that stands for all of training, from the largest one that is less. `scale` finishes a
    panel, from its amounts and whether the base split was run, whose amount is the last one then.
    """
    by_base: dict[str, list[tuple[float, str]]] = {}
    for split in evaluation.learning_curve_splits:
        form = learning_curve_point(split)
        if form is not None and (amount := amount_of(form)) is not None:
            by_base.setdefault(form.base, []).append((amount, split))
    if not by_base:
        return None
    figure, axes = panels(len(by_base), columns=2, height=2.9, sharey=True)
    for panel, (base, points) in zip(axes, by_base.items(), strict=True):
        points.sort()
        if is_whole := base in evaluation.splits:
            points.append((whole(points[-1][0]), base))
        _draw_errors(panel, evaluation, points)
        panel.set_title(split_label(base))
        panel.set_xlabel(label)
        scale(panel, [amount for amount, _ in points], is_whole)
    axes[0].set_ylabel("MAPE")
    legend_below(figure, axes[0])
    return figure


def _draw_errors(panel: Axes, evaluation: Evaluation, points: list[tuple[float, str]]) -> None:
    """Draw one line per predictor with its interval as a band, over a logarithmic scale of errors."""
    style = predictor_styles(evaluation.predictors)
    for name in evaluation.ranking():
        rows = [(amount, evaluation.value(split, name)) for amount, split in points]
        known = [(amount, row["value"], row["low"], row["high"]) for amount, row in rows if row is not None]
        if known:
            amounts, values, low, high = zip(*known, strict=True)
            panel.plot(amounts, values, label=evaluation.label(name), linewidth=1.2, **style[name])
            panel.fill_between(amounts, low, high, color=style[name]["color"], alpha=0.15, linewidth=0)
    plain_axis(panel, "y", unit=" %", log=True)
    # errors along a curve often stay within a factor of two, where 1, 2 and 5 would leave a single number
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))


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
