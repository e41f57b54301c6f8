"""The error by the share of the training rows that was learned from."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from perfcast.evaluation import Evaluation
from perfcast.figures._curves import curves_of, draw_errors
from perfcast.figures._style import legend_below, panels

TITLE = "Error by size of the training data"
CAPTION = (
    "MAPE, averaged over tasks, after training on a share of the training rows, and on all; both scales are "
    "logarithmic. Whole groups are drawn, once, each share within the next larger one; the rows set aside for choices "
    "shrink alike. Bands: 95 % bootstrap intervals clustered by entity. Held fixed along a line: the test rows and the "
    "settings. What all points of a line share, the bands hold too: its differences are surer than they look."
)


def draw(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per question, shares along x; None when none was asked after a share of its training."""
    curves = curves_of(evaluation, lambda form: form.share, lambda _: 1.0)
    if not curves:
        return None
    figure, axes = panels(len(curves), columns=2, height=2.9, sharey=True)
    for panel, curve in zip(axes, curves, strict=True):
        draw_errors(panel, evaluation, curve)
        panel.set_xscale("log")
        panel.set_xticks(curve.amounts, [f"{100 * amount:g} %" for amount in curve.amounts])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xlabel("share of the training rows")
    axes[0].set_ylabel("MAPE")
    legend_below(figure, axes[0])
    return figure
