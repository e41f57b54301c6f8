"""Differences of the MAPE with their intervals, one panel per split."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perfcast.comparing.verdicts import BETTER, SAME, WORSE
from perfcast.evaluation import AVERAGE
from perfcast.figures._style import MUTED, STYLE, panels, plain_axis
from perfcast.figures.base import to_svg

TITLE = "Differences of the MAPE, B − A, in percentage points"
CAPTION = (
    "MAPE of B minus that of A in percentage points, averaged over tasks, with paired 95 % intervals clustered by "
    "entity; left of the line B is better. Grey: no real change."
)
# of Okabe and Ito, as in all figures; the arrow says the same as the colour
_LOOKS: dict[str, dict[str, Any]] = {
    BETTER: {"color": "#0072b2", "marker": "<"},
    WORSE: {"color": "#d55e00", "marker": ">"},
    SAME: {"color": MUTED, "marker": "o"},
}


def draw_differences(changes: pd.DataFrame) -> str | None:
    """Return one data set's differences as SVG, None where nothing differs.

    Shapes: `changes` as `MetricChanges.frame`, rows of one data set.
    """
    rows = changes[(changes["task"] == AVERAGE) & (changes["metric"] == "mape")]
    if (rows["difference"] == 0).all():
        return None
    splits = list(dict.fromkeys(rows["split"]))
    order = list(dict.fromkeys(rows["predictor"]))
    with matplotlib.rc_context(STYLE):
        height = 0.22 * len(order) + 0.9
        figure, axes = panels(len(splits), columns=4, height=height, sharey=True)
        for panel, split in zip(axes, splits, strict=True):
            _panel(panel, rows[rows["split"] == split], order)
            panel.set_title(split)
        axes[0].set_yticks(range(len(order)), order)
        axes[0].set_ylim(len(order) - 0.5, -0.5)
        handles = [Line2D([], [], linestyle="none", label=verdict, **look) for verdict, look in _LOOKS.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        return to_svg(figure, TITLE)


def _panel(panel: Axes, rows: pd.DataFrame, order: list[str]) -> None:
    panel.axvline(0, color=MUTED, linewidth=1)
    panel.grid(visible=False, axis="y")
    panel.locator_params(axis="x", nbins=5)
    for row in rows.to_dict("records"):
        look, place = _LOOKS.get(row["verdict"], _LOOKS[SAME]), order.index(row["predictor"])
        if math.isfinite(row["low"]):
            panel.plot([row["low"], row["high"]], [place] * 2, color=look["color"])
        panel.plot(row["difference"], place, linestyle="none", **look)
    plain_axis(panel, "x")
