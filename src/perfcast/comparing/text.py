"""A comparison as plain text for the terminal."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from textwrap import wrap
from typing import Any

import pandas as pd

from perfcast.comparing.changes import Changes
from perfcast.comparing.verdicts import REAL
from perfcast.comparing.words import (
    LABELS,
    code_lines,
    data_lines,
    number,
    parameter_lines,
    real_first,
    row_lines,
    signed,
    summary,
)
from perfcast.evaluation import AVERAGE

_FEW = 5
_WIDTH = 100
READING = (
    "Real: the 95 % interval of the paired difference, drawn by entity on the same test rows, excludes zero, and the "
    "change stands the correction for the predictors compared beside it. With one seed, luck of the seed counts too."
)


def as_text(changes: Changes, *, everything: bool = False) -> str:
    """Return the comparison: one line of summary, what changed, and the metrics, real changes first.

    Without `everything` there is one line per predictor and split where anything changed for real.
    """
    most = None if everything else _FEW
    lines = [f"{changes.before} -> {changes.after}: {summary(changes)}", ""]
    parts = {
        "data": data_lines(changes),
        "code": code_lines(changes, most),
        "parameters": parameter_lines(changes, most),
        "rows": row_lines(changes)[: None if everything else 2 * _FEW],
    }
    for name, told in parts.items():
        lines += [f"{name if index == 0 else '':<12}{line}" for index, line in enumerate(told)]
    lines.append("")
    lines += _all_metrics(changes) if everything else _real_metrics(changes)
    return "\n".join([*lines, *wrap(READING, _WIDTH)]) + "\n"


def _real_metrics(changes: Changes) -> list[str]:
    """Return a line per (data set, split, predictor) with a real change, the largest changes of MAPE first."""
    frame = changes.metrics.frame
    keys = ["dataset", "split", "predictor"]
    lines, quiet = [], 0
    for dataset, own in frame.groupby("dataset", sort=False):
        table = []
        for (_, split, predictor), part in own.groupby(keys, sort=False):
            if not part["verdict"].isin(REAL).any():
                quiet += 1
                continue
            row = part[(part["task"] == AVERAGE) & (part["metric"] == "mape")].iloc[0]
            table.append((row, [split, predictor, *_numbers(row), row["verdict"], _also(part)]))
        table.sort(key=lambda pair: (pair[0]["verdict"] not in REAL, -abs(pair[0]["difference"] / pair[0]["before"])))
        if table:
            head = [str(dataset), "", "MAPE A", "B", "B - A [95 %]", "verdict", "also changed for real"]
            lines += [*_columns([head, *[cells for _, cells in table]]), ""]
    if quiet:
        lines += [f"{quiet} further pairs of split and predictor: no real change (--all shows them)", ""]
    return lines


def _also(part: pd.DataFrame) -> str:
    """Return the other real changes of one predictor on one split: the average's metrics, and tasks by their MAPE."""
    several = part["task"].nunique() > 2  # with one task its metrics are those of the average
    told, hidden = [], 0
    for row in part[part["verdict"].isin(REAL)].to_dict("records"):
        average, mape = row["task"] == AVERAGE, row["metric"] == "mape"
        if average != mape and (average or several):
            name = LABELS[str(row["metric"])] if average else row["task"]
            told.append(f"{name} {row['verdict']} {signed(row['difference'])}")
        elif several and not average and not mape:
            hidden += 1
    told += [f"{hidden} further of single tasks"] if hidden and not told else []
    return ", ".join(told)


def _all_metrics(changes: Changes) -> list[str]:
    frame = changes.metrics.frame
    lines = []
    for dataset, own in frame.groupby("dataset", sort=False):
        head = [str(dataset), "", "task", "metric", "A", "B", "B - A [95 %]", "p", "verdict"]
        table = [
            [row["split"], row["predictor"], row["task"], LABELS[row["metric"]], *_numbers(row), *_end(row)]
            for row in real_first(own).to_dict("records")
        ]
        lines += [*_columns([head, *table]), ""]
    return lines


def _numbers(row: pd.Series | dict[Hashable, Any]) -> list[str]:
    bounds = f"[{signed(row['low'])}, {signed(row['high'])}]" if math.isfinite(row["low"]) else "[no interval]"
    difference = signed(row["difference"])
    return [number(row["before"]), number(row["after"]), f"{difference} {bounds}" if difference != "0" else "0"]


def _end(row: dict[Hashable, Any]) -> list[str]:
    p = row["p"]
    return ["-" if math.isnan(p) else f"{p:.3f}", row["verdict"]]


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[index]) for line in table) for index in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
