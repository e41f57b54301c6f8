"""Measured against predicted scores."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import declare_plot
from perfcast.report.plots.drawing import MUTED, WIDTH, select_leaders
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import split_label

_PREDICTORS = 2
_CELLS = 90
"""Hexagons across all panels of a square arrangement, which bounds the size of the file."""
# The middle of viridis: its ends vanish on white and on near-black pages.
_COLORS = ListedColormap(colormaps["viridis_r"](np.linspace(0.1, 0.75, 64)))


@declare_plot(
    "Measured and predicted scores",
    "Every test row of every split, both scales logarithmic; a darker cell holds more rows. On the line, the "
    "prediction equals the measurement. Rows of panels are the best predictors and the baseline. Predictions of "
    "several seeds are averaged.",
)
def measured_against_predicted(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split and predictor, rows counted in hexagons to keep the file small."""
    splits, predictors = evaluation.splits, select_leaders(evaluation.ranking(), _PREDICTORS)
    side = (WIDTH - 0.6) / max(4, len(splits))
    figure = Figure(figsize=(WIDTH, 0.92 * side * len(predictors) + 0.5), layout="constrained")
    grid = figure.subplots(len(predictors), len(splits), squeeze=False, sharex="col", sharey="col")
    cells = int(_CELLS / np.sqrt(grid.size))
    for column, split in enumerate(splits):
        rows = evaluation.tables["points"]
        rows = rows[rows["split"] == split]
        low, high = (float(extreme) for extreme in (rows["measured"].min() / 1.3, rows["measured"].max() * 1.3))
        for line, predictor in enumerate(predictors):
            panel = grid[line][column]
            points = rows[rows["predictor"] == predictor]
            # An estimate far outside the range of the measurements is drawn at the edge, not left out.
            predicted = points["predicted"].clip(low, high)
            panel.hexbin(
                points["measured"],
                predicted,
                gridsize=cells,
                xscale="log",
                yscale="log",
                extent=(np.log10(low), np.log10(high), np.log10(low), np.log10(high)),
                bins="log",
                mincnt=1,
                cmap=_COLORS,
                edgecolors="none",
                linewidths=0,
            )
            panel.plot([low, high], [low, high], color=MUTED, linewidth=0.8)
            panel.set(xlim=(low, high), ylim=(low, high), box_aspect=1)
            panel.minorticks_off()
            if line == 0:
                panel.set_title(split_label(split))
            if column == 0:
                panel.set_ylabel(replace_underscores(predictor), fontweight="bold")
    figure.supxlabel("measured score", fontsize=8.5)
    figure.supylabel("predicted score", fontsize=8.5)
    return figure
