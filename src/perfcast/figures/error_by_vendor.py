"""Errors by maker."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.figures._slices import draw_slices, maker_slices

TITLE = "Error by maker"
CAPTION = (
    "MAPE of the best predictors and the baseline for the makers with the most test rows, all tasks together, with "
    "95 % intervals clustered by entity; the scale is logarithmic. Grey, on the right: how many results were tested."
)


def draw(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per slice by maker and split; None when the data set declares none."""
    return draw_slices(evaluation, maker_slices(evaluation))
