"""Published values beside the metrics of every predictor on the same and on harder splits."""

from __future__ import annotations

from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import INK, MUTED, legend_below, panels, plain_axis, predictor_styles
from perfcast.schema.display_names import metric_label, replace_underscores
from perfcast.schema.metric_names import METRICS, PERCENT
from perfcast.splits import split_label

_LINE = 160
"""Characters of a line of small print."""


@declare_plot(
    "Comparison with published values",
    "Errors and other metrics that others published, beside every predictor by task, metric and split. Errors "
    "are on a logarithmic scale, and further left is better. For R², rank correlations and shares of pairs, "
    "further right is better; values below the axis are drawn at its left end. The dashed line is the published "
    "value, on rows drawn like those of the split named beside it. Filled marks are that split, and only they "
    "compare with the line. Open marks are splits whose test machines are new; the distance between open and "
    "filled marks is what the published value does not show.",
)
def published_comparison(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per task and metric published; None when there is none, or none of the splits was run."""
    published = evaluation.tables["published"]
    published = published[published["split"].isin(evaluation.splits)]
    outputs = [
        (task, metric)
        for metric in METRICS
        for task in (*evaluation.tasks, AVERAGE)
        if ((published["task"] == task) & (published["metric"] == metric)).any()
    ]
    if not outputs:
        return None
    order = evaluation.ranking()
    same_scale = len({metric for _, metric in outputs}) == 1
    figure, axes = panels(len(outputs), columns=2, height=0.28 * len(order) + 1.2, sharex=same_scale, sharey=True)
    for panel, (task, metric) in zip(axes, outputs, strict=True):
        mine = published[(published["task"] == task) & (published["metric"] == metric)]
        unit = " %" if metric in PERCENT else ""
        lowest = -np.inf if metric in PERCENT else min(0.0, mine["value"].min())
        _draw_splits(panel, evaluation, (task, metric), set(mine["split"]), lowest)
        for row in mine.to_dict("records"):
            panel.axvline(row["value"], color=INK, linestyle="--", linewidth=1)
        plain_axis(panel, "x", unit=unit, log=metric in PERCENT)
        for row in mine.to_dict("records"):
            label = f" {row['what']}, {row['split']}: {row['value']:g}{unit} "
            at = panel.transAxes.inverted().transform(panel.transData.transform((row["value"], 0)))[0]
            side = "left" if at < 0.5 else "right"
            panel.annotate(label, (row["value"], -0.5), va="bottom", ha=side, fontsize=6.5, color=MUTED)
        panel.set_title(task if metric == "mape" else f"{task}: {metric_label(metric)}")
        panel.set_yticks(range(len(order)), [replace_underscores(name) for name in order])
        panel.set_ylim(len(order) - 0.4, -1.3)
    sources = "Published: " + "; ".join(dict.fromkeys(published["citation"]))
    legend_below(figure, axes[0])
    figure.legends[0].set_title("\n".join(wrap(sources, _LINE)), FontProperties(size=6.5))
    return figure


def _draw_splits(
    panel: Axes, evaluation: Evaluation, output: tuple[str, str], compared: set[str], lowest: float
) -> None:
    """Draw one row per predictor and one mark per split, the compared ones filled and with their number."""
    order, style = evaluation.ranking(), predictor_styles(evaluation.splits)
    for split in evaluation.splits:
        rows = {name: evaluation.value(split, name, *output) for name in order}
        known = [(row["value"], name) for name, row in rows.items() if row is not None and np.isfinite(row["value"])]
        values, positions = [value for value, _ in known], [order.index(name) for _, name in known]
        face = style[split]["color"] if split in compared else "none"
        shown = np.maximum(values, lowest)
        panel.plot(shown, positions, linestyle="none", label=split_label(split), markerfacecolor=face, **style[split])
        for value, at in zip(values, zip(shown, positions, strict=True), strict=True) if split in compared else ():
            panel.annotate(f"{value:.2f}", at, xytext=(0, 4), textcoords="offset points", ha="center", fontsize=6.5)
