"""Permutation importance of each feature group."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import legend_below, panels, plain_axis, predictor_styles, select_leaders
from perfcast.splits import split_label

_SHOWN = 4


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
        shown = select_leaders(_ranked(evaluation, split, set(part["predictor"])), _SHOWN)
        width = 0.8 / len(shown)
        for number, predictor in enumerate(shown):
            mine = part[part["predictor"] == predictor].set_index("group")["increase"].reindex(groups)
            positions = [position + (number - (len(shown) - 1) / 2) * width for position in range(len(groups))]
            panel.barh(positions, mine, height=width, color=style[predictor]["color"], label=predictor)
        panel.set_yticks(range(len(groups)), groups if panel is axes[0] else [""] * len(groups))
        panel.invert_yaxis()
        panel.set_xscale("symlog", linthresh=1)
        plain_axis(panel, "x")
        panel.set_title(split_label(split))
        panel.set_xlabel("increase of error, points")
    legend_below(figure, axes[0])
    return figure


def _ranked(evaluation: Evaluation, split: str, explained: set[str]) -> list[str]:
    values = {name: evaluation.value(split, name) for name in explained}
    errors = {name: float(row["value"]) for name, row in values.items() if row is not None}
    return sorted(errors, key=lambda name: (errors[name], name))
