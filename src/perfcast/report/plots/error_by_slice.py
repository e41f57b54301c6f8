"""Errors by the values of slice columns: vendor, lineage, and the other columns of a dataset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import (
    INK,
    MUTED,
    WIDTH,
    legend_below,
    plain_axis,
    predictor_styles,
    select_leaders,
)
from perfcast.schema.display_names import column_label, replace_underscores
from perfcast.splits import split_label

_PREDICTORS = 2
_VALUES = 14
_SOME, _MANY, _VERY_MANY = 0.9, 1.8, 3.2
"""Decades of a narrow axis above which its labels would touch."""


@declare_plot(
    "Error by vendor",
    "Mean error of the best predictors and the baseline for the vendors with the most test rows, all tasks together, "
    "with 95 % intervals clustered by entity. The scale is logarithmic. Gray numbers on the right: test "
    "results.",
)
def error_by_vendor(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per vendor column and split; None when the dataset declares none."""
    return _draw_slices(evaluation, evaluation.vendor_slices)


@declare_plot(
    "Error by family",
    "Mean error of the best predictors and the baseline for the families and generations with the most test rows, all "
    "tasks together, with 95 % intervals clustered by entity. The scale is logarithmic. Gray numbers on the "
    "right: test results.",
)
def error_by_family(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per lineage column and split; None when the dataset declares none."""
    return _draw_slices(evaluation, evaluation.lineage_slices)


@declare_plot(
    "Error by task and configuration",
    "Mean error of the best predictors and the baseline by task, number of processors, memory configuration, "
    "compiler, or other columns that the dataset declares: the values with the most test rows, with 95 % "
    "intervals clustered by entity. The scale is logarithmic. Gray numbers on the right: test results.",
)
def error_by_setup(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per remaining slice column and split; None when the dataset declares none."""
    return _draw_slices(evaluation, evaluation.other_slices)


def _draw_slices(evaluation: Evaluation, names: Sequence[str]) -> Figure | None:
    """Draw errors by the most frequent values of each named slice, splits side by side; None when there is no slice."""
    rows = evaluation.tables["slices"]
    rows = rows[rows["slice"].isin(names)]
    if rows.empty:
        return None
    values = {name: _frequent(evaluation, name) for name in names}
    splits = [split for split in evaluation.splits if split in set(rows["split"])]
    predictors = select_leaders(evaluation.ranking(), _PREDICTORS)
    heights = [len(values[name]) + 2.2 for name in names]
    figure = Figure(figsize=(WIDTH, 0.21 * sum(heights) + 0.6), layout="constrained")
    grid = figure.subplots(len(names), len(splits), squeeze=False, sharey="row", sharex="col", height_ratios=heights)
    style = predictor_styles(evaluation.predictors)
    for line, name in enumerate(names):
        for column, split in enumerate(splits):
            panel = grid[line][column]
            part = rows[(rows["slice"] == name) & (rows["split"] == split)]
            for predictor in predictors:
                mine = part[part["predictor"] == predictor].set_index("value").reindex(values[name])
                positions = range(len(mine))
                panel.hlines(positions, mine["low"], mine["high"], color=style[predictor]["color"], alpha=0.5)
                panel.plot(
                    mine[evaluation.error_metrics[0]],
                    positions,
                    linestyle="none",
                    label=replace_underscores(predictor),
                    **style[predictor],
                )
            counts = part.drop_duplicates("value").set_index("value")["rows"]
            for position, value in enumerate(values[name]):
                panel.annotate(
                    f"{counts.get(value, 0):,}",
                    (1.0, position),
                    xycoords=panel.get_yaxis_transform(),
                    ha="right",
                    va="center",
                    fontsize=6.5,
                    color=MUTED,
                )
            panel.set_ylim(len(mine) - 0.4, -0.6)
            plain_axis(panel, "x", unit=f" {evaluation.error_unit}", log=True)
            panel.margins(x=0.2)
            if line == 0:
                panel.set_title(split_label(split))
        grid[line][0].set_yticks(range(len(values[name])), [_short(value) for value in values[name]])
        grid[line][0].set_ylabel(column_label(name), color=INK)
    for panel in grid[-1]:
        _thin_out(panel)
    legend_below(figure, grid[0][0])
    return figure


def _thin_out(panel: Axes) -> None:
    """Leave only as many ticks on a narrow logarithmic axis as there is room for labels."""
    low, high = panel.get_xlim()
    decades = np.log10(high / low)
    base = 100 if decades > _VERY_MANY else 10
    panel.xaxis.set_major_locator(
        LogLocator(base, subs=(1,) if decades > _MANY else (1, 3) if decades > _SOME else (1, 2, 5))
    )


def _frequent(evaluation: Evaluation, name: str) -> list[str]:
    """Return the values of a slice that most test rows have, most frequent first, then by name."""
    rows = evaluation.tables["slices"]
    rows = rows[rows["slice"] == name]
    counts = rows.drop_duplicates(["split", "value"]).groupby("value")["rows"].sum()
    return [str(value) for value in counts.sort_index().sort_values(ascending=False, kind="stable").index[:_VALUES]]


def _short(value: str, limit: int = 26) -> str:
    return value if len(value) <= limit else value[: limit - 1].rstrip() + "…"
