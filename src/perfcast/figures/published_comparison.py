"""Errors that others published, beside those of every predictor on the same and on harder questions."""

from __future__ import annotations

from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from perfcast.evaluation import Evaluation
from perfcast.figures._style import INK, MUTED, legend_below, looks, panels, plain_axis

TITLE = "Beside published errors"
CAPTION = (
    "MAPE of every predictor by task and split; the scale is logarithmic, further left is better. The dashed line is "
    "the error that others published, on rows drawn as the split named beside it draws them; filled marks are that "
    "split, and only they compare with the line. The other splits ask about machines that training does not know: the "
    "distance between the marks is what such a published error hides."
)

_LINE = 160
"""Characters of a line of small print."""


def draw(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per task with a published error; None when there is none, or none of the splits was run."""
    published = evaluation.published[evaluation.published["split"].isin(evaluation.splits)]
    tasks = [task for task in evaluation.tasks if task in set(published["task"])]
    if not tasks:
        return None
    order = evaluation.ranking()
    figure, axes = panels(len(tasks), columns=2, height=0.28 * len(order) + 1.2, sharex=True, sharey=True)
    compared = set(published["split"])
    for panel, task in zip(axes, tasks, strict=True):
        _draw_splits(panel, evaluation, task, order, compared)
        for row in published[published["task"] == task].to_dict("records"):
            panel.axvline(row["mape"], color=INK, linestyle="--", linewidth=1)
            told = f" {row['what']}, {row['split']}: {row['mape']:g} %"
            panel.annotate(told, (row["mape"], -0.5), va="bottom", fontsize=6.5, color=MUTED)
        plain_axis(panel, "x", unit=" %", log=True)
        panel.set_title(task)
        panel.set_yticks(range(len(order)), order)
        panel.set_ylim(len(order) - 0.4, -1.3)
    sources = "Published: " + "; ".join(dict.fromkeys(published["citation"]))
    legend_below(figure, axes[0])
    figure.legends[0].set_title("\n".join(wrap(sources, _LINE)), FontProperties(size=6.5))
    return figure


def _draw_splits(panel: Axes, evaluation: Evaluation, task: str, order: list[str], compared: set[str]) -> None:
    """Draw one row per predictor and one mark per split, the compared ones filled and with their number."""
    style = looks(evaluation.splits)
    for split in evaluation.splits:
        found = [(row["value"], name) for name in order if (row := evaluation.value(split, name, task)) is not None]
        if not found:
            continue
        values, places = [value for value, _ in found], [order.index(name) for _, name in found]
        face = style[split]["color"] if split in compared else "none"
        panel.plot(values, places, linestyle="none", label=split, markerfacecolor=face, **style[split])
        for value, place in zip(values, places, strict=True) if split in compared else ():
            told, at = f"{value:.2f}", (value, place)
            panel.annotate(told, at, xytext=(0, 4), textcoords="offset points", ha="center", fontsize=6.5)
