"""Tables of errors and of published values, as rows of cells."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import AVERAGE, BASELINE, Evaluation
from perfcast.evaluation.predictor_comparison import clear_winner
from perfcast.schema.display_names import metric_label
from perfcast.schema.metric_names import HIGH_IS_GOOD, PERCENT, POINTS
from perfcast.splits import split_label

_OTHERS = ("p90", "r2", "spearman", "pairs")
_INTERVALS = ("coverage", "width", "interval_score")
_PERCENT = (*POINTS, "mape", "medape", "p90", *_INTERVALS)
_WORST = 3
_MIN_ROWS = 20


@dataclass(frozen=True)
class Cell:
    """One cell: text, a smaller note, the number that sorts it, and whether it is the clear winner."""

    text: str
    note: str = ""
    key: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Grid:
    """A table of predictors by (group, metric): `groups` head the columns, each with every label of `metrics`."""

    caption: str
    groups: list[str]
    metrics: list[str]
    rows: list[tuple[str, list[Cell]]]
    foot: list[tuple[str, list[Cell]]]


def number(value: float) -> str:
    """Return a number with two decimals below 10, one below 100 and none above; a dash for NaN."""
    if not np.isfinite(value):
        return "–"
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def score(value: float) -> str:
    """Return a score with three significant digits, whole from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def headline_grid(evaluation: Evaluation) -> Grid:
    """Return predictors by splits: mean and median error averaged over tasks, with intervals and the noise floor."""
    columns = [(split, AVERAGE, metric) for split in evaluation.splits for metric in evaluation.error_metrics]
    over = f", average over {len(evaluation.tasks)} tasks" if len(evaluation.tasks) > 1 else ""
    return _grid(evaluation, f"Errors in {evaluation.error_unit}{over}", evaluation.splits, columns)


def all_rows_grid(evaluation: Evaluation) -> Grid | None:
    """Return predictors by splits: the MAPE without and with the excluded rows.

    None where no row is excluded, and for shares, near 0 of which a percentage says nothing.
    """
    frame = evaluation.tables["all_rows"]
    if frame.empty or not frame["excluded"].any() or evaluation.error_unit != "%":
        return None
    average = frame[frame["task"] == AVERAGE]
    values = {(row["split"], row["predictor"]): row for row in average.to_dict("records")}
    counts = average.groupby("split")["excluded"].max()
    excluded = ", ".join(f"{counts[split]} in {split}" for split in evaluation.splits if split in counts)
    caption = (
        "MAPE in % without and with the test rows that are excluded because of their scores; "
        f"excluded scores: {excluded}"
    )
    rows = [
        (
            name,
            [
                Cell(number(row[metric]), key=row[metric]) if row else Cell("–")
                for row in (values.get((split, name)) for split in evaluation.splits)
                for metric in ("mape", "mape_all_rows")
            ],
        )
        for name in evaluation.ranking()
    ]
    return Grid(caption, evaluation.splits, ["counted rows", "all rows"], rows, [])


def task_grids(evaluation: Evaluation) -> list[Grid]:
    """Return one grid per split: predictors by tasks; none when there is one task."""
    if len(evaluation.tasks) < 2:
        return []
    return [
        _grid(
            evaluation,
            f"{split_label(split)} ({split}): errors in {evaluation.error_unit} by task",
            evaluation.tasks,
            [(split, task, metric) for task in evaluation.tasks for metric in evaluation.error_metrics],
        )
        for split in evaluation.splits
    ]


def other_metrics_grid(evaluation: Evaluation) -> Grid:
    """Return predictors by splits for the metrics outside the headline table, averaged over tasks."""
    columns = [(split, AVERAGE, metric) for split in evaluation.splits for metric in _OTHERS]
    caption = "Further metrics: 90th percentile of the error in %, R² of the log score, ranks within a task"
    grid = _grid(evaluation, caption, evaluation.splits, columns, notes=False)
    return Grid(grid.caption, grid.groups, [metric_label(metric, short=True) for metric in _OTHERS], grid.rows, [])


def interval_grid(evaluation: Evaluation) -> Grid | None:
    """Return predictors by splits for the prediction intervals, averaged over tasks; None without intervals.

    No cell is a winner: a coverage is best at its level, and a narrow interval counts only at that coverage.
    """
    columns = [(split, AVERAGE, metric) for split in evaluation.splits for metric in _INTERVALS]
    caption = (
        f"Prediction intervals of {100 * evaluation.level:g} %: coverage, median width and interval score in %. "
        "The interval score adds to the width 2 / (1 - level) times the distance of a score outside; smaller is better"
    )
    rows = [
        (
            name,
            [
                _cell(evaluation.value(split, name, task, metric), notes=False, best=False)
                for split, task, metric in columns
            ],
        )
        for name in evaluation.ranking()
    ]
    if not any(cell.key is not None for _, cells in rows for cell in cells):
        return None
    return Grid(caption, evaluation.splits, [metric_label(metric, short=True) for metric in _INTERVALS], rows, [])


def paired_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return, per predictor, the difference of its mean error to the baseline's on every split, with the claim."""
    frame = evaluation.tables["paired"]
    is_shown = (frame["task"] == AVERAGE) & (frame["metric"] == evaluation.error_metrics[0])
    frame = frame[(frame["against"] == "baseline") & is_shown]
    rows = []
    for predictor in [name for name in evaluation.ranking() if name != BASELINE]:
        mine = {row["split"]: row for row in frame[frame["predictor"] == predictor].to_dict("records")}
        if mine:
            cells = [_difference(mine[split]) if split in mine else Cell("–") for split in evaluation.splits]
            rows.append({"name": predictor, "cells": cells})
    return rows


def worst_slices(evaluation: Evaluation, predictor: str) -> list[dict[str, Any]]:
    """Return the slices of enough rows with the largest mean error of one predictor on every split."""
    metric = evaluation.error_metrics[0]
    frame = evaluation.tables["slices"]
    frame = frame[(frame["predictor"] == predictor) & (frame["rows"] >= _MIN_ROWS)]
    frame = frame.assign(error=frame[metric]).sort_values("error", ascending=False, kind="stable")
    worst = pd.concat([frame[frame["split"] == split].head(_WORST) for split in evaluation.splits])
    return [{str(key): value for key, value in row.items()} for row in worst.to_dict("records")]


def _grid(
    evaluation: Evaluation, caption: str, groups: list[str], columns: list[tuple[str, str, str]], *, notes: bool = True
) -> Grid:
    winners = {column: clear_winner(evaluation.tables["paired"], *column) for column in columns}
    rows = []
    for predictor in evaluation.ranking():
        cells = []
        for split, task, metric in columns:
            row = evaluation.value(split, predictor, task, metric)
            cells.append(_cell(row, notes=notes, best=winners[split, task, metric] == predictor))
        rows.append((predictor, cells))
    return Grid(
        caption,
        groups,
        [metric_label(metric, short=True) for metric in evaluation.error_metrics],
        rows,
        _floor(evaluation, columns),
    )


def _cell(row: pd.Series | None, *, notes: bool, best: bool) -> Cell:
    if row is None or not np.isfinite(row["value"]):
        return Cell("–")
    note = f"{number(row['low'])}–{number(row['high'])}" if notes and np.isfinite(row["low"]) else ""
    text = number(row["value"]) if row["metric"] in _PERCENT else f"{row['value']:.3f}"
    return Cell(text, note, float(row["value"]), best)


def _floor(evaluation: Evaluation, columns: list[tuple[str, str, str]]) -> list[tuple[str, list[Cell]]]:
    """Return the noise floor as a line below the predictors, empty without repeated configurations."""
    noise = evaluation.tables["noise"]
    if noise.empty or evaluation.error_unit != "%":
        return []  # the floor is in %
    floors = {row["task"]: row for row in noise.to_dict("records")}
    values = [floors.get(task, {}).get(f"{metric}_floor", np.nan) for _, task, metric in columns]
    return [("noise floor", [Cell(number(value)) for value in values])]


def _difference(row: Mapping[Hashable, Any]) -> Cell:
    note = f"{row['low']:+.2f} to {row['high']:+.2f}" if np.isfinite(row["low"]) else "no interval"
    return Cell(f"{row['difference']:+.2f}", f"{note}, {row['claim']}", float(row["difference"]))


@dataclass(frozen=True)
class PublishedLine:
    """One published value, that of the same method here, and by split those of the leader and of the best predictor."""

    what: str
    task: str
    metric: str
    published: str
    same: Cell
    splits: list[tuple[Cell, Cell]]


@dataclass(frozen=True)
class PublishedTable:
    """All published values whose rows were drawn like those of one split; that split is the first."""

    leader: str
    splits: list[str]
    lines: list[PublishedLine]
    citations: list[str]


def published_tables(
    evaluation: Evaluation, leader: str, predictor_label: Callable[[str], str] = str
) -> list[PublishedTable]:
    """Return one table per split with published values, empty where no such split was run."""
    tables = []
    for split, entries in evaluation.tables["published"].groupby("split", sort=False):
        if split not in evaluation.splits:
            continue
        splits = [str(split), *(other for other in evaluation.ranked_splits if other != split)]
        lines = [_line(evaluation, leader, entry, splits, predictor_label) for _, entry in entries.iterrows()]
        tables.append(PublishedTable(leader, splits, lines, list(dict.fromkeys(entries["citation"]))))
    return tables


def _line(
    evaluation: Evaluation,
    leader: str,
    entry: pd.Series,
    splits: list[str],
    predictor_label: Callable[[str], str],
) -> PublishedLine:
    task, metric, method = entry["task"], entry["metric"], entry["predictor"]
    return PublishedLine(
        what=entry["what"],
        task=task,
        metric=metric_label(metric) + ("\u00a0%" if metric in PERCENT else ""),
        published=_number(entry["value"], metric),
        same=_add_note(_published_cell(evaluation, splits[0], method, task, metric), predictor_label(method)),
        splits=[
            (
                _published_cell(evaluation, split, leader, task, metric),
                replace(
                    _published_cell(evaluation, split, best := _best(evaluation, split, task, metric), task, metric),
                    note=predictor_label(best),
                ),
            )
            for split in splits
        ],
    )


def _best(evaluation: Evaluation, split: str, task: str, metric: str) -> str:
    """Return the predictor with the best value, "" where there is none."""
    rows = [(evaluation.value(split, name, task, metric), name) for name in evaluation.predictors]
    values = {name: float(row["value"]) for row, name in rows if row is not None and pd.notna(row["value"])}
    choose = max if metric in HIGH_IS_GOOD else min
    return choose(values, key=values.__getitem__) if values else ""


def _published_cell(evaluation: Evaluation, split: str, name: str, task: str, metric: str) -> Cell:
    """Return a value with its interval."""
    row = evaluation.value(split, name, task, metric)
    if row is None or pd.isna(row["value"]):
        return Cell("–")
    has_interval = pd.notna(row["low"]) and pd.notna(row["high"])
    interval = f"{_number(row['low'], metric)} to {_number(row['high'], metric)}" if has_interval else ""
    return Cell(_number(row["value"], metric), interval, float(row["value"]))


def _add_note(cell: Cell, name: str) -> Cell:
    """Return a cell with the name of its predictor before its interval; an empty cell stays."""
    return cell if cell.key is None else replace(cell, note="; ".join(filter(None, (name, cell.note))))


def _number(value: float, metric: str) -> str:
    """Return a percentage as in other tables, a coefficient with three decimals."""
    return number(value) if metric in PERCENT else f"{value:.3f}"
