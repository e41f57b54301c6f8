"""Curves of the error over how much was learned from: what the figures of training size and history share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from perfcast.evaluation import Evaluation
from perfcast.figures._style import looks, plain_axis
from perfcast.splits import LearningCurvePoint, learning_curve_point


@dataclass(frozen=True)
class Curve:
    """The splits that ask one question after more and more training, and the amount of each.

    `whole`: the question itself was run; it is the last one.
    """

    base: str
    splits: list[str]
    amounts: list[float]
    whole: bool


def curves_of(
    evaluation: Evaluation, amount: Callable[[LearningCurvePoint], float | None], whole: Callable[[float], float]
) -> list[Curve]:
    """Return one curve per question that was also asked after less training, by the given kind of amount.

    `whole` gives the amount that stands for all of training, from the largest one that is less.
    """
    found: dict[str, list[tuple[float, str]]] = {}
    for split in evaluation.with_less_training:
        form = learning_curve_point(split)
        size = amount(form) if form is not None else None
        if form is not None and size is not None:
            found.setdefault(form.base, []).append((size, split))
    curves = []
    for base, points in found.items():
        points.sort()
        ran = base in evaluation.splits
        ended = [*points, *([(whole(points[-1][0]), base)] if ran else [])]
        curves.append(Curve(base, [split for _, split in ended], [size for size, _ in ended], ran))
    return curves


def errors_along(evaluation: Evaluation, curve: Curve, predictor: str) -> pd.DataFrame:
    """Return amount, value, low and high, in %, of one predictor where it was run. Shapes: (points of the curve, 4)."""
    found = [
        (amount, row["value"], row["low"], row["high"])
        for amount, split in zip(curve.amounts, curve.splits, strict=True)
        if (row := evaluation.value(split, predictor)) is not None
    ]
    return pd.DataFrame(found, columns=["amount", "value", "low", "high"])


def draw_errors(panel: Axes, evaluation: Evaluation, curve: Curve) -> None:
    """Draw one line per predictor with its interval as a band, over a logarithmic scale of errors."""
    style = looks(evaluation.predictors)
    for predictor in evaluation.ranking():
        found = errors_along(evaluation, curve, predictor)
        if found.empty:
            continue
        colour = style[predictor]["color"]
        panel.plot(found["amount"], found["value"], label=predictor, linewidth=1.2, **style[predictor])
        panel.fill_between(found["amount"], found["low"], found["high"], color=colour, alpha=0.15, linewidth=0)
    panel.set_title(curve.base)
    plain_axis(panel, "y", unit=" %", log=True)
    # errors along a curve often stay within a factor of two, where 1, 2 and 5 would leave a single number
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
