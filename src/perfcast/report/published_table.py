"""Values that others published, beside the metrics here: on rows drawn like theirs, and on the other splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.report.error_tables import Cell, number
from perfcast.schema.metric_names import HIGH_IS_GOOD, LABELS, PERCENT


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
    for split, entries in evaluation.published.groupby("split", sort=False):
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
        metric=LABELS[metric] + ("\u00a0%" if metric in PERCENT else ""),
        published=_number(entry["value"], metric),
        same=_add_note(_cell(evaluation, splits[0], method, task, metric), predictor_label(method)),
        splits=[
            (
                _cell(evaluation, split, leader, task, metric),
                replace(
                    _cell(evaluation, split, best := _best(evaluation, split, task, metric), task, metric),
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


def _cell(evaluation: Evaluation, split: str, name: str, task: str, metric: str) -> Cell:
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
