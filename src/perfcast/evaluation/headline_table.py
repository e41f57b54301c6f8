"""Errors of a dataset as a table for the terminal."""

from __future__ import annotations

import numpy as np

from perfcast.evaluation.evaluation_tables import AVERAGE, BASELINE, Evaluation
from perfcast.evaluation.terminal_table import format_table


def headline(evaluation: Evaluation) -> str:
    """Return the table of MAPE / MedAPE, averaged over tasks: predictors by splits, the noise floor last."""
    count = len(evaluation.tasks)
    over = f"average over {count} tasks" if count > 1 else evaluation.tasks[0]
    rows = []
    for predictor in evaluation.ranking():
        name = f"{predictor} (baseline)" if predictor == BASELINE else predictor
        rows.append([name, *[_cell(evaluation, split, predictor) for split in evaluation.splits]])
    noise = evaluation.noise[evaluation.noise["task"] == AVERAGE]
    if not noise.empty:
        floor = noise.iloc[0]
        cell = f"{floor['mape_floor']:.2f} / {floor['medape_floor']:.2f}"
        rows.append(["noise floor", *[cell for _ in evaluation.splits]])
    text = [f"{evaluation.dataset}: MAPE / MedAPE in %, {over}"]
    text += format_table(["predictor", *evaluation.splits], rows, right=range(1, len(evaluation.splits) + 1))
    if evaluation.comparison_splits:
        text.append(
            f"{', '.join(evaluation.comparison_splits)}: only for comparison with published values; not counted"
        )
    if evaluation.learning_curve_splits:
        text.append(f"{len(evaluation.learning_curve_splits)} learning-curve splits: see the plots; not counted")
    return "\n".join(text)


def _cell(evaluation: Evaluation, split: str, predictor: str) -> str:
    values = [evaluation.value(split, predictor, AVERAGE, metric) for metric in ("mape", "medape")]
    return " / ".join("-" if value is None or np.isnan(value["value"]) else f"{value['value']:.2f}" for value in values)
