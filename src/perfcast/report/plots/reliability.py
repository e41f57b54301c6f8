"""Coverage of prediction intervals of several levels."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import MUTED, legend_below, panels, plain_axis, predictor_styles, select_leaders
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import split_label

_PREDICTORS = 3


@declare_plot(
    "Calibration of prediction intervals",
    "Share of the measured scores inside intervals of 50 to 99 %, averaged over tasks, for the best predictors "
    "and the baseline. On the dashed line the coverage equals the level. Above it intervals are wider than "
    "needed; below it they are too narrow.",
)
def reliability(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split, the level along x; None without intervals."""
    table = evaluation.tables["levels"]
    splits = [split for split in evaluation.splits if split in set(table["split"])]
    if not splits:
        return None
    style = predictor_styles(evaluation.predictors)
    figure, axes = panels(len(splits), columns=4, height=2.5, sharex=True, sharey=True)
    for panel, split in zip(axes, splits, strict=True):
        panel.plot([50, 100], [50, 100], color=MUTED, linestyle="--", linewidth=1)
        for predictor in select_leaders(evaluation.ranking(), _PREDICTORS):
            part = table[(table["split"] == split) & (table["predictor"] == predictor)]
            panel.plot(
                part["level"], part["coverage"], label=replace_underscores(predictor), linewidth=1, **style[predictor]
            )
        panel.set_title(split_label(split))
        panel.set_xlabel("level")
        panel.set_xlim(48, 101)
        for which in ("x", "y"):
            plain_axis(panel, which, unit=" %")
    axes[0].set_ylabel("coverage")
    legend_below(figure, axes[0])
    return figure
