"""Tables of the report from the CSV files of an evaluation: errors, intervals, published values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import AVERAGE, BASELINE, Evaluation
from perfcast.evaluation.predictor_comparison import clear_winner
from perfcast.evaluation.supplementary_tables import LEVEL_LABELS
from perfcast.report.text_tables import (
    Cell,
    Label,
    Line,
    Section,
    TextTable,
    number,
    split_heading,
    text_section,
)
from perfcast.schema.display_names import metric_label
from perfcast.schema.metric_names import HIGH_IS_GOOD, PERCENT, POINTS
from perfcast.splits import split_label

_OTHERS = ("p90", "r2", "spearman", "pairs")
_INTERVALS = ("coverage", "width", "interval_score")
_PERCENT = (*POINTS, "mape", "medape", "p90", *_INTERVALS)
_WORST = 3
_MIN_ROWS = 20
"""Rows of a slice below which its error is not listed."""


def error_table(evaluation: Evaluation) -> TextTable:
    """Return predictors by splits: mean and median error averaged over tasks, with intervals and the noise floor."""
    over = f", average over {len(evaluation.tasks)} tasks" if len(evaluation.tasks) > 1 else ""
    return _metric_table(evaluation, f"Errors in {evaluation.error_unit}{over}", evaluation.error_metrics)


def task_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return one table per split: predictors by tasks; none when there is one task."""
    caption = f"errors in {evaluation.error_unit} by task"
    return [
        _metric_table(
            evaluation,
            f"{split_label(split)} ({split}): {caption}",
            evaluation.error_metrics,
            split=split,
            fold="By task",
        )
        for split in (evaluation.splits if len(evaluation.tasks) > 1 else ())
    ]


def other_metrics_table(evaluation: Evaluation) -> TextTable:
    """Return predictors by splits for the metrics outside the first table, averaged over tasks."""
    caption = "Further metrics: 90th percentile of the error in %, R² of the log score, ranks within a task"
    return replace(_metric_table(evaluation, caption, _OTHERS, notes=False, fold="Further metrics"), foot=())


def interval_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return predictors by splits for the prediction intervals, averaged over tasks; none without intervals.

    No cell is a winner: a coverage is best at its level, and a narrow interval counts only at that coverage.
    """
    caption = (
        f"Prediction intervals of {100 * evaluation.level:g} %: coverage, median width and interval score in %. "
        "The interval score adds to the width 2 / (1 - level) times the distance of a score outside; smaller is better"
    )
    fold = "Prediction intervals of every predictor"
    table = _metric_table(evaluation, caption, _INTERVALS, notes=False, winners=False, fold=fold)
    has_values = any(cell.key is not None for _, *cells in table.lines for cell in cells if isinstance(cell, Cell))
    return [replace(table, foot=())] if has_values else []


def all_rows_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return predictors by splits: the MAPE without and with the excluded rows.

    None where no row is excluded, and for shares, near 0 of which a percentage says nothing.
    """
    frame = evaluation.tables["all_rows"]
    if frame.empty or not frame["excluded"].any() or evaluation.error_unit != "%":
        return []
    average = frame[frame["task"] == AVERAGE]
    values = {(row["split"], row["predictor"]): row for row in average.to_dict("records")}
    counts = average.groupby("split")["excluded"].max()
    excluded = ", ".join(f"{counts[split]} in {split}" for split in evaluation.splits if split in counts)
    caption = (
        "MAPE in % without and with the test rows that are excluded because of their scores; "
        f"excluded scores: {excluded}"
    )

    def cell(name: str, split: str, metric: str) -> Cell:
        row = values.get((split, name))
        return Cell(number(row[metric]), key=row[metric]) if row else Cell("–")

    metrics = {"mape": "counted rows", "mape_all_rows": "all rows"}
    return [_predictor_table(evaluation, caption, evaluation.splits, metrics, cell)]


def paired_tables(evaluation: Evaluation, label: Label = str) -> list[TextTable]:
    """Return the differences of mean errors to the baseline's on every split, with the claim; none without any."""
    frame = evaluation.tables["paired"]
    is_shown = (frame["task"] == AVERAGE) & (frame["metric"] == evaluation.error_metrics[0])
    rows = frame[(frame["against"] == "baseline") & is_shown].to_dict("records")
    cells = {(row["predictor"], row["split"]): _difference(row) for row in rows}
    names = [name for name in evaluation.ranking() if name != BASELINE and any(name == first for first, _ in cells)]
    lines: list[Line] = [
        [name, *(cells.get((name, split), Cell("–")) for split in evaluation.splits)] for name in names
    ]
    title = f"Differences to {label(BASELINE)}"
    caption = (
        f"Mean error minus that of {label(BASELINE)}, in percentage points, on the same resamples of the same rows; "
        "negative is better"
    )
    headings: Line = ["predictor", *map(split_heading, evaluation.splits)]
    return [TextTable(title, caption, headings, lines, fold=title)] if lines else []


def worst_slices(evaluation: Evaluation, predictor: str) -> list[dict[str, Any]]:
    """Return the slices of enough rows with the largest mean error of one predictor on every split."""
    frame = evaluation.tables["slices"]
    frame = frame[(frame["predictor"] == predictor) & (frame["rows"] >= _MIN_ROWS)]
    frame = frame.assign(error=frame[evaluation.error_metrics[0]])
    frame = frame.sort_values("error", ascending=False, kind="stable")
    worst = pd.concat([frame[frame["split"] == split].head(_WORST) for split in evaluation.splits])
    return [{str(key): value for key, value in row.items()} for row in worst.to_dict("records")]


def noise_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return the spread of repeated measurements by task; none where nothing was measured twice."""
    lines = [
        [
            row["task"],
            *(f"{row[name]:,}" for name in ("configurations", "rows")),
            *(number(row[name]) for name in ("cv_median", "cv_mean", "mape_floor")),
        ]
        for row in evaluation.tables["noise"].to_dict("records")
    ]
    title = "Repeated measurements of one configuration"
    headings = ["task", "configurations", "rows", "median CV", "mean CV", "MAPE floor"]
    return [TextTable("Repeated measurements", f"{title}, in %", headings, lines, fold=title)] if lines else []


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
            *(number(row[name]) for name in ("mape", "medape", "coverage", "width")),
        ]
        for row in rows
    ]
    text = (
        "Test machines through the tool's own path, as users describe them: characteristics that a level leaves out "
        "are filled in. Of a forward split there are two predictions: with the facts of processors that were public "
        "at its cut, and with all of them, as on the day of a launch. Values are averages over tasks, in %; width is "
        "the median."
    )
    headings = ["split", "facts", "given", "rows", "MAPE", "MedAPE", "coverage", "width"]
    table = TextTable("Described machines", "Error, coverage and width by level of description", headings, lines)
    return text_section("described", "Machines as users describe them", text, [table] if lines else [])


def published_tables(evaluation: Evaluation, leader: str, label: Label = str) -> list[TextTable]:
    """Return one table per split with published values, empty where no such split was run.

    Each line has a published value, that of the same method here, and by split those of the leader and of the best
    predictor; the split whose rows were drawn like those of the published value is the first.
    """
    tables = []
    for split, entries in evaluation.tables["published"].groupby("split", sort=False):
        if split not in evaluation.splits:
            continue
        splits = [str(split), *(other for other in evaluation.ranked_splits if other != split)]
        tables.append(
            TextTable(
                f"Published values beside ours, {splits[0]}",
                f"Published: {'; '.join(dict.fromkeys(entries['citation']))}",
                ["what", "task", "metric", "published", "same method here", *map(split_heading, splits)],
                [_published_line(evaluation, leader, entry, splits, label) for _, entry in entries.iterrows()],
            )
        )
    return tables


def _predictor_table(
    evaluation: Evaluation,
    caption: str,
    groups: Sequence[str],
    metrics: Mapping[str, str],
    cell: Callable[[str, str, str], Cell],
) -> TextTable:
    """Return predictors by groups and, in each group, by metrics with their labels."""
    columns = [(group, metric) for group in groups for metric in metrics]
    lines: list[Line] = [[name, *(cell(name, *column) for column in columns)] for name in evaluation.ranking()]
    headings, groups_of = ["predictor", *metrics.values()], list(map(split_heading, groups))
    return TextTable(caption, caption, headings, lines, groups=groups_of, style="sortable")


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
    """Return the metrics of predictors by splits, averaged over tasks, or by the tasks of one split."""

    def place(group: str) -> tuple[str, str]:
        return (split, group) if split else (group, AVERAGE)

    groups = evaluation.tasks if split else evaluation.splits
    columns = [(group, metric) for group in groups for metric in metrics]
    best = {
        column: clear_winner(evaluation.tables["paired"], *place(column[0]), column[1]) for column in columns if winners
    }

    def cell(name: str, group: str, metric: str) -> Cell:
        row = evaluation.value(place(group)[0], name, place(group)[1], metric)
        if row is None or not np.isfinite(row["value"]):
            return Cell("–")
        note = (f"{number(row['low'])}–{number(row['high'])}",) if notes and np.isfinite(row["low"]) else ()
        text = number(row["value"]) if metric in _PERCENT else f"{row['value']:.3f}"
        return Cell(text, note, float(row["value"]), "best" if best.get((group, metric)) == name else "")

    labels = {metric: metric_label(metric, short=True) for metric in metrics}
    table = replace(_predictor_table(evaluation, caption, groups, labels, cell), fold=fold)
    if evaluation.tables["noise"].empty or evaluation.error_unit != "%":
        return table  # the floor is in %
    floors = {row["task"]: row for row in evaluation.tables["noise"].to_dict("records")}
    values = [floors.get(place(group)[1], {}).get(f"{metric}_floor", np.nan) for group, metric in columns]
    return replace(table, foot=[["noise floor", *map(number, values)]])


def _difference(row: Mapping[Hashable, Any]) -> Cell:
    note = f"{row['low']:+.2f} to {row['high']:+.2f}" if np.isfinite(row["low"]) else "no interval"
    return Cell(f"{row['difference']:+.2f}", (f"{note}, {row['claim']}",), float(row["difference"]))


def _published_line(evaluation: Evaluation, leader: str, entry: pd.Series, splits: list[str], label: Label) -> Line:
    task, metric, method = entry["task"], entry["metric"], entry["predictor"]

    def cell(split: str, name: str) -> Cell:
        row = evaluation.value(split, name, task, metric)
        if row is None or pd.isna(row["value"]):
            return Cell("–")
        has_interval = pd.notna(row["low"]) and pd.notna(row["high"])
        interval = (f"{text(row['low'])} to {text(row['high'])}",) if has_interval else ()
        return Cell(text(row["value"]), interval, float(row["value"]))

    def text(value: float) -> str:
        return number(value) if metric in PERCENT else f"{value:.3f}"

    choose = max if metric in HIGH_IS_GOOD else min
    same, columns = cell(splits[0], method), []
    for split in splits:
        keys = {name: key for name in evaluation.predictors if (key := cell(split, name).key) is not None}
        led, best = cell(split, leader), choose(keys, key=keys.__getitem__) if keys else ""
        of_best = cell(split, best)
        if of_best.text != led.text:
            led = replace(led, notes=(*led.notes, f"best: {of_best.text}, {label(best)}"))
        columns.append(led)
    if same.key is not None:
        same = replace(same, notes=("; ".join(filter(None, (label(method), *same.notes))),))
    unit = "\u00a0%" if metric in PERCENT else ""
    return [entry["what"], task, metric_label(metric) + unit, text(entry["value"]), same, *columns]
