"""The error about the future by how many years were learned from."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.figures._curves import curves_of, draw_errors
from perfcast.figures._style import legend_below, panels

TITLE = "Error by years of history"
CAPTION = (
    "MAPE, averaged over tasks, after training on the last years before the cut alone, and on all there are; the scale "
    "is logarithmic. Bands: 95 % bootstrap intervals clustered by entity. Held fixed along a line: the test rows and "
    "the settings. What all points of a line share, the bands hold too: its differences are surer than they look. Set "
    "aside for choices is the last quarter of the years, twelve months at most."
)


def draw(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per question, years along x; None when none was asked after fewer years."""
    # all of history has no place on a scale of years: it stands one step after the longest
    curves = curves_of(evaluation, lambda form: form.years, lambda longest: longest + 1)
    if not curves:
        return None
    figure, axes = panels(len(curves), columns=2, height=2.9, sharey=True)
    for panel, curve in zip(axes, curves, strict=True):
        draw_errors(panel, evaluation, curve)
        ticks = [f"{amount:g}" for amount in curve.amounts]
        panel.set_xticks(curve.amounts, [*ticks[:-1], "all"] if curve.whole else ticks)
        panel.set_xlabel("last years before the cut")
    axes[0].set_ylabel("MAPE")
    legend_below(figure, axes[0])
    return figure
