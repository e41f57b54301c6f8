"""Tables of the report from the CSV files of an evaluation: errors, intervals, calibration, published values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from perfcast.evaluation import AVERAGE, BASELINE, Evaluation
from perfcast.evaluation.error_metrics import clear_winner
from perfcast.evaluation.supplementary_tables import LEVEL_LABELS
from perfcast.report.text_tables import (
    EMPTY,
    Cell,
    Line,
    Section,
    TextTable,
    count,
    number,
    split_heading,
)
from perfcast.schema.display_names import metric_label
from perfcast.schema.metric_names import POINTS
from perfcast.splits import split_label

_OTHERS = ("p90", "r2", "spearman", "pairs")
_INTERVALS = ("coverage", "width", "interval_score")
_PERCENT = (*POINTS, "mape", "medape", "p90", *_INTERVALS)
_MIN_ROWS = 20
"""Rows below which a coverage is not flagged."""
TOLERANCE = 2.0
"""Percentage points around the level within which a coverage is not flagged."""


def metric_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return predictors by splits, averaged over tasks: errors, which are also by task, further metrics, intervals.

    Of the intervals no cell is a winner: a coverage is best at its level, and a narrow interval counts only at that
    coverage. Without intervals there is no table of them.
    """
    tasks = evaluation.tasks
    metrics = evaluation.error_metrics
    unit = evaluation.error_unit
    over = f", average over {len(tasks)} tasks" if len(tasks) > 1 else ""
    widths = (
        f"Prediction intervals of {100 * evaluation.level:g} %: coverage, median width and interval score in %. "
        "The interval score adds to the width 2 / (1 - level) times the distance of a score outside; smaller is better"
    )
    fold = "Prediction intervals of every predictor"
    others = "Further metrics: 90th percentile of the error in %, R² of the log score, ranks within a task"
    intervals = _metric_table(evaluation, widths, _INTERVALS, notes=False, winners=False, fold=fold)
    tables = [_metric_table(evaluation, f"Errors in {unit}{over}", metrics)]
    if len(tasks) > 1:
        for split in evaluation.splits:
            caption = f"{split_label(split)} ({split}): errors in {unit} by task"
            tables.append(_metric_table(evaluation, caption, metrics, split=split, fold="By task"))
    tables.append(_metric_table(evaluation, others, _OTHERS, notes=False, fold="Further metrics"))
    if any(cell != EMPTY for _, *cells in intervals.lines for cell in cells):
        tables.append(intervals)
    return tables


def paired_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return the differences of mean errors to the baseline's on every split, with the claim; none without any."""
    frame = evaluation.tables["paired"]
    baseline = evaluation.label(BASELINE)
    is_shown = (frame["task"] == AVERAGE) & (frame["metric"] == evaluation.error_metrics[0])
    rows = frame[(frame["against"] == "baseline") & is_shown].to_dict("records")
    cells = {(row["predictor"], row["split"]): _difference(row) for row in rows}
    names = [name for name in evaluation.ranking() if any(name == first for first, _ in cells)]
    lines: list[Line] = [[name, *(cells.get((name, split), EMPTY) for split in evaluation.splits)] for name in names]
    caption = (
        f"Mean error minus that of {baseline}, in percentage points, on the same resamples of the same rows; "
        "negative is better"
    )
    title = f"Differences to {baseline}"
    headings: Line = ["predictor", *map(split_heading, evaluation.splits)]
    return [TextTable(title, caption, headings, lines, fold=title)] if lines else []


def described_section(evaluation: Evaluation) -> Section:
    """Return error, coverage and width of machines predicted as users describe them, by level of description."""
    frame = evaluation.tables["described"]
    rows = [] if frame.empty else frame[frame["task"] == AVERAGE].to_dict("records")
    lines = [
        [
            split_label(row["split"]),
            row["facts"],
            f"{row['level']} {LEVEL_LABELS[row['level'] - 1]}",
            f"{row['n']:,}",
            number(row["mape"]),
            number(row["medape"]),
            number(row["coverage"]),
            number(row["width"]),
        ]
        for row in rows
    ]
    headings = ["split", "facts", "given", "rows", "MAPE", "MedAPE", "coverage", "width"]
    table = TextTable("Described machines", "Error, coverage and width by level of description", headings, lines)
    return Section("described", "Machines as users describe them", [table] if lines else [])


def _metric_table(
    evaluation: Evaluation,
    caption: str,
    metrics: Sequence[str],
    *,
    split: str = "",
    notes: bool = True,
    winners: bool = True,
    fold: str = "",
) -> TextTable:
    """Return the metrics of predictors by splits, or by the tasks of one split; the noise floor is among the notes."""
    paired = evaluation.tables["paired"]
    if split:
        groups = {task: (split, task) for task in evaluation.tasks}
    else:
        groups = {name: (name, AVERAGE) for name in evaluation.splits}
    columns = [(*place, metric) for place in groups.values() for metric in metrics]
    best = {column: clear_winner(paired, *column) if winners else None for column in columns}

    def cell(name: str, column: tuple[str, str, str]) -> Cell:
        of_split, task, metric = column
        row = evaluation.value(of_split, name, task, metric)
        if row is None or not np.isfinite(row["value"]):
            return EMPTY
        note = (f"{number(row['low'])}–{number(row['high'])}",) if notes and np.isfinite(row["low"]) else ()
        text = number(row["value"]) if metric in _PERCENT else f"{row['value']:.3f}"
        return Cell(text, note, float(row["value"]), "best" if best[column] == name else "")

    foot: list[Line] = []
    noise = evaluation.tables["noise"]
    if notes and len(noise) and evaluation.error_unit == "%":  # the floor is in %
        floors = {row["task"]: row for row in noise.to_dict("records")}
        values = [floors.get(task, {}).get(f"{metric}_floor", np.nan) for _, task, metric in columns]
        foot.append(["noise floor", *map(number, values)])
    return TextTable(
        caption,
        caption,
        ["predictor", *(metric_label(metric, short=True) for metric in metrics)],
        [[name, *(cell(name, column) for column in columns)] for name in evaluation.ranking()],
        groups=list(map(split_heading, groups)),
        foot=foot,
        fold=fold,
        style="sortable",
    )


def _difference(row: Mapping[Hashable, Any]) -> Cell:
    note = f"{row['low']:+.2f} to {row['high']:+.2f}" if np.isfinite(row["low"]) else "no interval"
    return Cell(f"{row['difference']:+.2f}", (f"{note}, {row['claim']}",), float(row["difference"]))


def calibration_tables(evaluation: Evaluation, predictor: str) -> list[TextTable]:
    """Return coverage and width by task; none without intervals."""
    caption = (
        f"Share of the measured scores inside their {100 * evaluation.level:g} % interval, below it the median width "
        "and the number of rows"
    )
    labels = {AVERAGE: AVERAGE}
    if len(evaluation.tasks) > 1:
        labels = {task: task for task in evaluation.tasks} | {AVERAGE: "average over tasks"}
    lines = [_task_line(evaluation, predictor, task, label) for task, label in labels.items()]
    headings: Line = ["task", *map(split_heading, evaluation.splits)]
    is_known = any(cell != EMPTY for _, *cells in lines for cell in cells)
    return [TextTable("Coverage and width by task", caption, headings, lines)] if is_known else []


def _task_line(evaluation: Evaluation, predictor: str, task: str, label: str) -> Line:
    line: Line = [label]
    for split in evaluation.splits:
        coverage, width = (evaluation.value(split, predictor, task, metric) for metric in ("coverage", "width"))
        if coverage is None or width is None or not np.isfinite(coverage["value"]):
            line.append(EMPTY)
        else:
            line.append(_coverage(evaluation, coverage["value"], width["value"], coverage["rows"]))
    return line


def _coverage(evaluation: Evaluation, coverage: float, width: float, rows: int) -> Cell:
    excess = coverage - 100 * evaluation.level
    mark = "" if abs(excess) <= TOLERANCE or rows < _MIN_ROWS else "low" if excess < 0 else "high"
    return Cell(f"{coverage:.1f} %", (f"median {number(width)} % wide", count(int(rows), "row")), mark=mark)
