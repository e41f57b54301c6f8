"""Explanations of predictors: attention maps, and importance of feature groups."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.evaluation.supplementary_tables import BETWEEN
from perfcast.report.plots.drawing import (
    INK,
    declare_plot,
    legend_below,
    panels,
    plain_axis,
    predictor_styles,
    rank_on_split,
    select_leaders,
)
from perfcast.splits import split_label

_COLUMNS_SHOWN = 8
_ON_CELLS = "#101418"
"""A fixed color, unlike INK, which turns light on a dark page while cells stay light."""
_SHOWN = 4


@declare_plot(
    "Attention maps",
    "Mean attention over test rows of the best predictor that has it, on the split with its smallest error: "
    "between groups of characteristics (rows are queries, columns are keys), and within each group the columns "
    "with the most attention. Attention shows which inputs a network reads, not how the prediction would change "
    "without them.",
)
def attention(evaluation: Evaluation) -> Figure | None:
    """Draw the map between groups and one bar panel per group; None when no run has maps."""
    maps = evaluation.tables["attention"]
    if maps.empty:
        return None
    errors = {
        (split, predictor): float(row["value"])
        for split, predictor in sorted(set(zip(maps["split"], maps["predictor"], strict=True)))
        if split in evaluation.splits and (row := evaluation.value(split, predictor)) is not None
    }
    if not errors:
        return None
    split, predictor = min(errors, key=lambda run: (errors[run], run))
    mine = maps[(maps["split"] == split) & (maps["predictor"] == predictor)]
    groups = sorted(set(mine["group"]) - {BETWEEN})
    figure, axes = panels(1 + len(groups), columns=3, height=2.5)
    _between(axes[0], mine[mine["group"] == BETWEEN])
    for panel, group in zip(axes[1:], groups, strict=True):
        shares = mine[mine["group"] == group].groupby("looks_at")["share"].mean().nlargest(_COLUMNS_SHOWN)
        panel.barh(range(len(shares)), shares * 100, color="#0072b2")
        panel.set_yticks(range(len(shares)), list(shares.index))
        panel.invert_yaxis()
        panel.set_title(group)
        panel.set_xlabel("share, %")
    figure.suptitle(f"{predictor} on {split}", fontsize=9, color=INK)
    return figure


def _between(panel: Axes, cells: pd.DataFrame) -> None:
    shares = cells.pivot(index="asks", columns="looks_at", values="share")
    panel.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    panel.set_xticks(range(len(shares.columns)), list(shares.columns), rotation=30, ha="right")
    panel.set_yticks(range(len(shares.index)), list(shares.index))
    panel.grid(visible=False)
    for row, query in enumerate(shares.index):
        for column, key in enumerate(shares.columns):
            share = shares.loc[query, key]
            panel.text(
                column, row, f"{share:.0%}", ha="center", va="center", color="white" if share > 0.6 else _ON_CELLS
            )
    panel.set_title("between groups")


@declare_plot(
    "Importance of feature groups",
    "Increase of the error of the first fold's model, in percentage points, when all columns of a group are "
    "shuffled together among the test rows of a task (grouped permutation importance), for the best predictors "
    "of each split. Groups share information, so the bars do not add up.",
)
def group_importance(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split; None without importances."""
    importance = evaluation.tables["importance"]
    if importance.empty:
        return None
    style = predictor_styles(evaluation.predictors)
    splits = [split for split in evaluation.splits if split in set(importance["split"])]
    figure, axes = panels(len(splits), columns=4, height=2.6)
    groups = sorted(set(importance["group"]))
    for panel, split in zip(axes, splits, strict=True):
        part = importance[importance["split"] == split]
        shown = select_leaders(rank_on_split(evaluation, split, set(part["predictor"])), _SHOWN)
        width = 0.8 / len(shown)
        for number, predictor in enumerate(shown):
            mine = part[part["predictor"] == predictor].set_index("group")["increase"].reindex(groups)
            positions = [position + (number - (len(shown) - 1) / 2) * width for position in range(len(groups))]
            panel.barh(
                positions, mine, height=width, color=style[predictor]["color"], label=evaluation.label(predictor)
            )
        panel.set_yticks(range(len(groups)), groups if panel is axes[0] else [""] * len(groups))
        panel.invert_yaxis()
        panel.set_xscale("symlog", linthresh=1)
        plain_axis(panel, "x")
        panel.set_title(split_label(split))
        panel.set_xlabel("increase of error, points")
    legend_below(figure, axes[0])
    return figure
