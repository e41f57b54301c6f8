"""What others published beside what is reached here: on rows drawn as theirs, and on the questions asked here."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.metric_names import HIGH_IS_GOOD, LABELS, PERCENT
from perfcast.report.tables import Cell, number


@dataclass(frozen=True)
class Line:
    """One published figure, the same method's here, and per split the leader's and, by name, the best of all."""

    what: str
    task: str
    metric: str
    published: str
    same: Cell
    splits: list[tuple[Cell, Cell]]


@dataclass(frozen=True)
class Comparison:
    """All published figures whose rows were drawn as one of the splits draws them; that split is the first."""

    leader: str
    splits: list[str]
    lines: list[Line]
    citations: list[str]


def comparisons(evaluation: Evaluation, leader: str) -> list[Comparison]:
    """Return one table per split that others' figures stand beside; none where none was run."""
    found = []
    for split, entries in evaluation.published.groupby("split", sort=False):
        if split not in evaluation.splits:
            continue
        splits = [str(split), *(other for other in evaluation.questions if other != split)]
        lines = [_line(evaluation, leader, entry, splits) for _, entry in entries.iterrows()]
        found.append(Comparison(leader, splits, lines, list(dict.fromkeys(entries["citation"]))))
    return found


def _line(evaluation: Evaluation, leader: str, entry: pd.Series, splits: list[str]) -> Line:
    task, metric, ours = entry["task"], entry["metric"], entry["predictor"]
    return Line(
        what=entry["what"],
        task=task,
        metric=LABELS[metric] + ("\u00a0%" if metric in PERCENT else ""),
        published=_number(entry["value"], metric),
        same=_named(evaluation, splits[0], ours, task, metric),
        splits=[
            (
                _cell(evaluation, split, leader, task, metric),
                replace(
                    _cell(evaluation, split, best := _best(evaluation, split, task, metric), task, metric), note=best
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
    known = pd.notna(row["low"]) and pd.notna(row["high"])
    interval = f"{_number(row['low'], metric)} to {_number(row['high'], metric)}" if known else ""
    return Cell(_number(row["value"], metric), interval, float(row["value"]))


def _named(evaluation: Evaluation, split: str, name: str, task: str, metric: str) -> Cell:
    """Return a value with the name of the predictor and its interval."""
    cell = _cell(evaluation, split, name, task, metric)
    return cell if cell.key is None else replace(cell, note="; ".join(filter(None, (name, cell.note))))


def _number(value: float, metric: str) -> str:
    """Return percentages as elsewhere, coefficients with three decimals."""
    return number(value) if metric in PERCENT else f"{value:.3f}"
