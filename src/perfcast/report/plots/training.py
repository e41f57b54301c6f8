"""Trainings: losses by epoch, and errors by the share and by the years of the training data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import legend_below, panels, plain_axis, predictor_styles, whole_numbers
from perfcast.schema.display_names import replace_underscores
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


@dataclass(frozen=True)
class Curve:
    """Learning-curve splits of one base split, by increasing amount of training data.

    `whole`: the base split was run; it is the last one.
    """

    base: str
    splits: list[str]
    amounts: list[float]
    whole: bool


@declare_plot(
    "Error by size of the training data",
    "MAPE, averaged over tasks, after training on a share of the training rows, and on all of them. Both scales "
    "are logarithmic. Whole groups are drawn once, and each share contains the smaller ones; validation rows "
    "shrink alike. Bands are 95 % bootstrap intervals clustered by entity. Test rows and hyperparameters are "
    "the same along a line, so differences along a line are more certain than the bands suggest.",
)
def training_size(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, shares of the training rows along x; None without such learning-curve splits."""
    curves = learning_curves_of(evaluation, lambda form: form.share, lambda _: 1.0)
    if not curves:
        return None
    figure, axes = panels(len(curves), columns=2, height=2.9, sharey=True)
    for panel, curve in zip(axes, curves, strict=True):
        _draw_errors(panel, evaluation, curve)
        panel.set_xscale("log")
        panel.set_xticks(curve.amounts, [f"{100 * amount:g} %" for amount in curve.amounts])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xlabel("share of the training rows")
    axes[0].set_ylabel("MAPE")
    legend_below(figure, axes[0])
    return figure


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
    curves = learning_curves_of(evaluation, lambda form: form.years, lambda longest: longest + 1)
    if not curves:
        return None
    figure, axes = panels(len(curves), columns=2, height=2.9, sharey=True)
    for panel, curve in zip(axes, curves, strict=True):
        _draw_errors(panel, evaluation, curve)
        ticks = [f"{amount:g}" for amount in curve.amounts]
        panel.set_xticks(curve.amounts, [*ticks[:-1], "all"] if curve.whole else ticks)
        panel.set_xlabel("last years before the cut-off date")
    axes[0].set_ylabel("MAPE")
    legend_below(figure, axes[0])
    return figure


def learning_curves_of(
    evaluation: Evaluation, amount: Callable[[LearningCurvePoint], float | None], whole: Callable[[float], float]
) -> list[Curve]:
    """Return one curve per split with learning-curve splits of the given kind of amount.

    `whole` gives the amount that stands for all of training, from the largest one that is less.
    """
    by_base: dict[str, list[tuple[float, str]]] = {}
    for split in evaluation.learning_curve_splits:
        form = learning_curve_point(split)
        size = amount(form) if form is not None else None
        if form is not None and size is not None:
            by_base.setdefault(form.base, []).append((size, split))
    curves = []
    for base, points in by_base.items():
        points.sort()
        ran = base in evaluation.splits
        ended = [*points, *([(whole(points[-1][0]), base)] if ran else [])]
        curves.append(Curve(base, [split for _, split in ended], [size for size, _ in ended], ran))
    return curves


def _errors_along(evaluation: Evaluation, curve: Curve, predictor: str) -> pd.DataFrame:
    """Return amount, value, low and high, in %, of one predictor where it was run. Shapes: (points of the curve, 4)."""
    points = [
        (amount, row["value"], row["low"], row["high"])
        for amount, split in zip(curve.amounts, curve.splits, strict=True)
        if (row := evaluation.value(split, predictor)) is not None
    ]
    return pd.DataFrame(points, columns=["amount", "value", "low", "high"])


def _draw_errors(panel: Axes, evaluation: Evaluation, curve: Curve) -> None:
    """Draw one line per predictor with its interval as a band, over a logarithmic scale of errors."""
    style = predictor_styles(evaluation.predictors)
    for predictor in evaluation.ranking():
        errors = _errors_along(evaluation, curve, predictor)
        if errors.empty:
            continue
        color = style[predictor]["color"]
        panel.plot(
            errors["amount"], errors["value"], label=replace_underscores(predictor), linewidth=1.2, **style[predictor]
        )
        panel.fill_between(errors["amount"], errors["low"], errors["high"], color=color, alpha=0.15, linewidth=0)
    panel.set_title(split_label(curve.base))
    plain_axis(panel, "y", unit=" %", log=True)
    # errors along a curve often stay within a factor of two, where 1, 2 and 5 would leave a single number
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
