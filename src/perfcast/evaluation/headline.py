"""The result of a data set as a few lines of plain text."""

from __future__ import annotations

import numpy as np

from perfcast.evaluation.results import AVERAGE, BASELINE, Evaluation


def headline(evaluation: Evaluation) -> str:
    """Return the table of MAPE / MedAPE, averaged over tasks: predictors by splits, with the noise floor below."""
    count = len(evaluation.tasks)
    over = f"average over {count} tasks" if count > 1 else evaluation.tasks[0]
    lines = [["predictor", *evaluation.splits]]
    for predictor in evaluation.ranking():
        name = f"{predictor} (baseline)" if predictor == BASELINE else predictor
        lines.append([name, *[_cell(evaluation, split, predictor) for split in evaluation.splits]])
    noise = evaluation.noise[evaluation.noise["task"] == AVERAGE]
    if not noise.empty:
        floor = noise.iloc[0]
        cell = f"{floor['mape_floor']:.2f} / {floor['medape_floor']:.2f}"
        lines.append(["noise floor", *[cell for _ in evaluation.splits]])
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    text = [f"{evaluation.dataset}: MAPE / MedAPE in %, {over}"]
    for line in lines:
        cells = [
            line[0].ljust(widths[0]),
            *[cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)],
        ]
        text.append("  ".join(cells).rstrip())
    if evaluation.beside_published:
        text.append(
            f"{', '.join(evaluation.beside_published)}: leaks on purpose, beside published figures; not counted"
        )
    if evaluation.with_less_training:
        text.append(f"{len(evaluation.with_less_training)} splits with less training: see the figures; not counted")
    return "\n".join(text)


def _cell(evaluation: Evaluation, split: str, predictor: str) -> str:
    values = [evaluation.value(split, predictor, AVERAGE, metric) for metric in ("mape", "medape")]
    return " / ".join("-" if value is None or np.isnan(value["value"]) else f"{value['value']:.2f}" for value in values)
