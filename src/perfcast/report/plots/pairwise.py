"""Differences of all pairs of predictors, split by split, with their significance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import INK, MUTED, WIDTH
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import split_label

_EDGES = (1.0, 5.0)
_FILL = "#0072b2"
_STRENGTHS = (0.18, 0.38, 0.62)
_MAX_NUMBERS = 12
"""Predictors up to which a cell has room for its number."""


@declare_plot(
    "Clear differences between predictors",
    "Difference of the mean error, averaged over tasks, in percentage points: predictor of the row minus predictor of "
    "the column. In each panel the best predictor is number 1. Filled: a clear "
    "difference, with at most 5 % risk of any false claim among all pairs of the panel (step-down test on the "
    "largest studentized difference, bootstrap resamples clustered by entity). Open: no clear difference.",
)
def pairwise(evaluation: Evaluation) -> Figure | None:
    """Draw one triangle of pairs per split, predictors in the order of the split; None without any pair."""
    pairs = evaluation.tables["pairs"]
    is_shown = (pairs["task"] == AVERAGE) & (pairs["metric"] == evaluation.error_metrics[0])
    known = pairs[is_shown & pairs["p_family"].notna()]
    orders = {split: order for split in evaluation.splits if len(order := _order(evaluation, known, split)) > 1}
    if not orders:
        return None
    size = max(map(len, orders.values()))
    columns = min(2, len(orders))
    rows = -(-len(orders) // columns)
    height = min(0.5 * WIDTH, 0.27 * size + 0.9 if size <= _MAX_NUMBERS else 0.16 * size + 0.6)
    figure = Figure(figsize=(WIDTH, height * rows + 0.4), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in panels[len(orders) :]:
        unused.set_visible(False)
    for panel, (split, order) in zip(panels, orders.items(), strict=False):
        _triangle(panel, order, known[known["split"] == split], numbers=size <= _MAX_NUMBERS)
        panel.set_title(split_label(split))
    _legend(figure)
    return figure


def _order(evaluation: Evaluation, known: pd.DataFrame, split: str) -> list[str]:
    """Return the predictors of a split that were compared, the smallest error first."""
    rows = known[known["split"] == split]
    names = sorted(set(rows["predictor"]) | set(rows["other"]))
    errors = {name: row["value"] for name in names if (row := evaluation.value(split, name)) is not None}
    return sorted(errors, key=lambda name: (errors[name], name))


def _triangle(panel: Axes, order: list[str], pairs: pd.DataFrame, *, numbers: bool) -> None:
    positions = {name: position for position, name in enumerate(order)}
    cells: dict[int | None, list[Path]] = {}
    for row in pairs[pairs["predictor"].isin(order) & pairs["other"].isin(order)].to_dict("records"):
        column, line = sorted((positions[row["predictor"]], positions[row["other"]]))
        size, is_clear = abs(row["difference"]), row["claim"] != "undecided"
        strength = int(np.searchsorted(_EDGES, size, side="right")) if is_clear else None
        half = 0.46 if is_clear else 0.44 if numbers else 0.24
        cells.setdefault(strength, []).append(_square(column, line, half))
        if numbers:
            text = f"{size:.2f}" if size < 1 else f"{size:.1f}" if size < 10 else f"{size:.0f}"
            ink = INK if is_clear else MUTED
            panel.annotate(text, (column, line), ha="center", va="center", fontsize=7, color=ink)
    for strength, squares in cells.items():
        panel.add_patch(PathPatch(Path.make_compound_path(*squares), **_look(strength)))
    panel.set_yticks(
        range(len(order)), [f"{replace_underscores(name)}  {place + 1}" for place, name in enumerate(order)]
    )
    shown = range(0, len(order) - 1, 1 if numbers else 2)
    panel.set_xticks(shown, [str(place + 1) for place in shown])
    panel.tick_params(length=0, labelsize=8.5 if numbers else 7)
    panel.set_xlim(-0.55, len(order) - 1.45)
    panel.set_ylim(len(order) - 0.45, -0.55)
    panel.grid(visible=False)
    for side in ("left", "bottom"):
        panel.spines[side].set_visible(False)


def _square(x: float, y: float, half: float) -> Path:
    corners = ((x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half))
    return Path([*corners, corners[0]], closed=True)


def _look(strength: int | None) -> dict[str, Any]:
    """Return the style of cells with a clear difference of this strength, or of cells without one."""
    if strength is None:
        return {"fill": False, "edgecolor": MUTED, "linewidth": 0.6}
    return {"facecolor": _FILL, "alpha": _STRENGTHS[strength], "linewidth": 0}


def _legend(figure: Figure) -> None:
    low, high = _EDGES
    labels = {
        0: f"clear difference below {low:g}",
        1: f"{low:g} to {high:g}",
        2: f"more than {high:g} points",
        None: "no clear difference",
    }
    handles = [Patch(label=label, **_look(strength)) for strength, label in labels.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
