"""Tables of the calibration of prediction intervals: coverage and width by task, vendor, year and shift."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.evaluation.run_predictions import SHIFT, YEAR
from perfcast.report.text_tables import Cell, Line, TextTable, count, number, split_heading
from perfcast.schema.display_names import column_label
from perfcast.splits import split_label

TOLERANCE = 2.0
"""Percentage points around the level within which a coverage is not flagged."""
_MIN_ROWS = 20
"""Rows below which a coverage is not flagged; a line without a split of more rows is left out."""


def calibration_data(evaluation: Evaluation, predictor: str) -> dict[str, Any] | None:
    """Return the tables of the section and its remarks; None without intervals."""
    tables = calibration_tables(evaluation, predictor)
    return {"tables": tables, "remarks": calibration_remarks(evaluation, predictor)} if tables else None


def calibration_tables(evaluation: Evaluation, predictor: str) -> list[TextTable]:
    """Return coverage and width by task, by every vendor column, by year and by shift; empty without intervals."""
    caption = (
        f"Share of the measured scores inside their {100 * evaluation.level:g} % interval, below it the median width "
        "and the number of rows"
    )
    average = "average over tasks" if len(evaluation.tasks) > 1 else AVERAGE
    tables = {
        "task": [
            _task_line(evaluation, predictor, task, task) for task in evaluation.tasks if len(evaluation.tasks) > 1
        ]
    }
    tables["task"].append(_task_line(evaluation, predictor, AVERAGE, average))
    for name in (*evaluation.vendor_slices, YEAR, SHIFT):
        tables[name] = _slice_lines(evaluation, predictor, name)
    shown = {
        name: lines for name, lines in tables.items() if any(cell != Cell("–") for _, *cells in lines for cell in cells)
    }
    return [
        TextTable(
            f"Coverage and width by {column_label(name)}",
            caption,
            [column_label(name), *map(split_heading, evaluation.splits)],
            lines,
            fold=f"By {column_label(name)}, {count(len(lines), 'line')}",
            open=place == 0,
        )
        for place, (name, lines) in enumerate(shown.items())
    ]


def calibration_remarks(evaluation: Evaluation, predictor: str) -> list[str]:
    """Return a sentence per split on its worst slab and on the test of exchangeability; none without intervals."""
    if evaluation.tables["calibration"].empty:
        return []
    sentences = []
    frame = evaluation.tables["calibration"][evaluation.tables["calibration"]["predictor"] == predictor]
    for line in frame[frame["split"].isin(evaluation.splits)].to_dict("records"):
        text = f"{split_label(line['split'])}: the worst fifth of the machines has {line['worst_slab_coverage']:.1f} %"
        if np.isfinite(line["log10_martingale"]):
            alarm = str(line["alarm"])
            text += f"; from {alarm} on, errors are unlike those of backtests" if alarm else "; no alarm"
            text += f" (martingale 10^{line['log10_martingale']:.1f})"
        sentences.append(f"{text}.")
    return sentences


def _task_line(evaluation: Evaluation, predictor: str, task: str, label: str) -> Line:
    line: Line = [label]
    for split in evaluation.splits:
        coverage, width = (evaluation.value(split, predictor, task, metric) for metric in ("coverage", "width"))
        if coverage is None or width is None or not np.isfinite(coverage["value"]):
            line.append(Cell("–"))
        else:
            line.append(_coverage(evaluation, coverage["value"], width["value"], coverage["rows"]))
    return line


def _slice_lines(evaluation: Evaluation, predictor: str, name: str) -> list[Line]:
    """Return one line per value of a slice; a value without a split of enough rows is left out."""
    frame = evaluation.tables["slices"]
    frame = frame[(frame["slice"] == name) & (frame["predictor"] == predictor) & frame["coverage"].notna()]
    counts = frame.groupby("value")["rows"].max()
    values = sorted(counts.index) if name == YEAR else counts.sort_values(ascending=False, kind="stable").index
    cells = {
        (row["split"], row["value"]): _coverage(evaluation, row["coverage"], row["width"], row["rows"])
        for row in frame.to_dict("records")
    }
    return [
        [str(value), *(cells.get((split, value), Cell("–")) for split in evaluation.splits)]
        for value in values
        if counts[value] >= _MIN_ROWS
    ]


def _coverage(evaluation: Evaluation, coverage: float, width: float, rows: int) -> Cell:
    excess = coverage - 100 * evaluation.level
    mark = "" if abs(excess) <= TOLERANCE or rows < _MIN_ROWS else "low" if excess < 0 else "high"
    return Cell(f"{coverage:.1f} %", (f"median {number(width)} % wide", count(int(rows), "row")), mark=mark)
