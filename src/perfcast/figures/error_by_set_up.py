"""Errors by task and set-up."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.figures._slices import draw_slices, other_slices

TITLE = "Error by task and set-up"
CAPTION = (
    "MAPE of the best predictors and the baseline by task, number of processors, memory set-up, compiler, or what else "
    "the data set declares: the values with the most test rows, with 95 % intervals clustered by entity; the scale is "
    "logarithmic. Grey, on the right: how many results were tested."
)


def draw(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per remaining slice and split; None when the data set declares none."""
    return draw_slices(evaluation, other_slices(evaluation))
