"""Coverage and width of prediction intervals by task, vendor and year: one predictor, every split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.evaluation.run_predictions import YEAR

TOLERANCE = 2.0
"""Percentage points around the level within which a coverage is not flagged."""
_MIN_ROWS = 20
"""Rows below which a coverage is not flagged; a line without a split of more rows is left out."""


@dataclass(frozen=True)
class CalibrationCell:
    """Coverage and mean width in %, and the number of rows; `flag` is "low", "high" or ""."""

    coverage: float
    width: float
    rows: int
    flag: str


@dataclass(frozen=True)
class CalibrationTable:
    """One table: the column that its lines are values of, and one cell or None per split."""

    column: str
    lines: list[tuple[str, list[CalibrationCell | None]]]


def calibration_tables(evaluation: Evaluation, predictor: str) -> list[CalibrationTable]:
    """Return one table by task, by every vendor column and by year; empty without intervals."""
    tables = [CalibrationTable("task", _by_task(evaluation, predictor))]
    tables += [
        CalibrationTable(name, _by_slice(evaluation, predictor, name)) for name in [*evaluation.vendor_slices, YEAR]
    ]
    return [table for table in tables if any(cell for _, cells in table.lines for cell in cells)]


def _by_task(evaluation: Evaluation, predictor: str) -> list[tuple[str, list[CalibrationCell | None]]]:
    lines = []
    for task in [*(evaluation.tasks if len(evaluation.tasks) > 1 else ()), AVERAGE]:
        cells: list[CalibrationCell | None] = []
        for split in evaluation.splits:
            coverage, width = (evaluation.value(split, predictor, task, metric) for metric in ("coverage", "width"))
            if coverage is None or width is None or not np.isfinite(coverage["value"]):
                cells.append(None)
            else:
                cells.append(_cell(evaluation, coverage["value"], width["value"], coverage["rows"]))
        lines.append(("average over tasks" if task == AVERAGE and len(evaluation.tasks) > 1 else task, cells))
    return lines


def _by_slice(evaluation: Evaluation, predictor: str, name: str) -> list[tuple[str, list[CalibrationCell | None]]]:
    frame = evaluation.slices
    frame = frame[(frame["slice"] == name) & (frame["predictor"] == predictor) & frame["coverage"].notna()]
    counts = frame.groupby("value")["rows"].max()
    values = sorted(counts.index) if name == YEAR else counts.sort_values(ascending=False, kind="stable").index
    cells = {
        (row["split"], row["value"]): _cell(evaluation, row["coverage"], row["width"], row["rows"])
        for row in frame.to_dict("records")
    }
    return [
        (str(value), [cells.get((split, value)) for split in evaluation.splits])
        for value in values
        if counts[value] >= _MIN_ROWS
    ]


def _cell(evaluation: Evaluation, coverage: float, width: float, rows: int) -> CalibrationCell:
    excess = coverage - 100 * evaluation.level
    flag = "" if abs(excess) <= TOLERANCE or rows < _MIN_ROWS else "low" if excess < 0 else "high"
    return CalibrationCell(float(coverage), float(width), int(rows), flag)
