"""Measured and predicted values of test rows that follow each other in time."""

from __future__ import annotations

from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.drawing import INK, declare_plot, legend_below, panels, whole_numbers
from perfcast.splits import split_label

_PREDICTED = "#d55e00"
_FLOOR = -1.0
"""Smallest value that is drawn, so that one second does not flatten a panel."""


@declare_plot(
    "Predictions over time",
    "One line of test rows per split and task: measured values, the prediction of the best predictor of the split, and "
    "its interval shaded. The line is the one whose measured values vary most; predictions have no part in the choice.",
)
def predictions_over_time(evaluation: Evaluation) -> Figure | None:
    """Draw one panel per split and task; None for a dataset without such rows."""
    series = evaluation.tables.get("series")
    if series is None or series.empty:
        return None
    series = series[series["split"].isin(evaluation.splits)]
    lines = list(series.groupby(["split", "task"], sort=False))
    figure, axes = panels(len(lines), columns=3, height=2.0)
    for panel, ((split, task), rows) in zip(axes, lines, strict=True):
        best = _best(evaluation, str(split), str(task), sorted(set(rows["predictor"])))
        line = rows[rows["predictor"] == best].sort_values("position")
        shown = line[["measured", "predicted", "low", "high"]].clip(lower=_FLOOR)
        panel.fill_between(line["position"], shown["low"], shown["high"], color=_PREDICTED, alpha=0.2, linewidth=0)
        panel.plot(line["position"], shown["measured"], color=INK, label="measured")
        panel.plot(line["position"], shown["predicted"], color=_PREDICTED, label="predicted")
        panel.set_title(f"{split_label(str(split))}: {task}", fontsize=8.5)
        panel.set_xlabel(f"{line['axis'].iloc[0]} of {line['line'].iloc[0]}", fontsize=7.5)
        whole_numbers(panel, "x")
        panel.set_ylabel(evaluation.label(best))
    figure.supylabel(str(series["quantity"].iloc[0]), fontsize=8.5)
    legend_below(figure, axes[0])
    return figure


def _best(evaluation: Evaluation, split: str, task: str, names: list[str]) -> str:
    """Return the predictor with the smallest error of a task on a split, the first by name among equals."""
    values = {name: evaluation.value(split, name, task) for name in names}
    errors = {name: float(row["value"]) for name, row in values.items() if row is not None}
    return min(errors, key=lambda name: (errors[name], name)) if errors else names[0]
