"""Errors by the year of publication."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.evaluation.run_predictions import YEAR
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import legend_below, panels, plain_axis, predictor_styles, select_leaders
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import split_label

_PREDICTORS = 3


@declare_plot(
    "Error by year of publication",
    "MAPE of the best predictors and the baseline over the test rows of each year, all tasks together, with 95 "
    "% intervals clustered by entity. Below each year: test results.",
)
def error_by_year(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split with several years, years along x; None when there is no such split."""
    rows = evaluation.tables["slices"]
    rows = rows[rows["slice"] == YEAR]
    predictors = select_leaders(evaluation.ranking(), _PREDICTORS)
    style = predictor_styles(evaluation.predictors)
    years_of = rows.groupby("split")["value"].nunique().to_dict()
    splits = [split for split in evaluation.splits if years_of.get(split, 0) > 1]
    if not splits:
        return None
    figure, axes = panels(len(splits), columns=2, height=2.3)
    for panel, split in zip(axes, splits, strict=True):
        part = rows[rows["split"] == split]
        years = sorted(set(part["value"]))
        counts = part.drop_duplicates("value").set_index("value")["rows"]
        for shift, predictor in enumerate(predictors):
            mine = part[part["predictor"] == predictor].set_index("value").reindex(years)
            middle = [index + 0.08 * (shift - (len(predictors) - 1) / 2) for index in range(len(years))]
            panel.vlines(middle, mine["low"], mine["high"], color=style[predictor]["color"], alpha=0.6)
            panel.plot(middle, mine["mape"], label=replace_underscores(predictor), linewidth=1, **style[predictor])
        panel.set_title(split_label(split))
        panel.set_xticks(range(len(years)), [f"{year}\n{counts[year]:,}" for year in years], fontsize=7.5)
        panel.set_xlim(-0.5, len(years) - 0.5)
        panel.set_ylim(bottom=0)
        plain_axis(panel, "y", unit=" %")
    legend_below(figure, axes[0])
    return figure
