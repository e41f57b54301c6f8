"""Errors by family."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.figures._slices import draw_slices, lineage_slices

TITLE = "Error by family"
CAPTION = (
    "MAPE of the best predictors and the baseline for the families and generations with the most test rows, all tasks "
    "together, with 95 % intervals clustered by entity; the scale is logarithmic. Grey, on the right: how "
    "many results were tested."
)


def draw(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per slice by lineage and split; None when the data set declares none."""
    return draw_slices(evaluation, lineage_slices(evaluation))
