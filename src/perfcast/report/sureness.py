"""How often intervals held, and how wide they were, by task, maker and year: one predictor, every split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.evaluation.predictions import YEAR
from perfcast.figures._slices import maker_slices

TOLERANCE = 2.0
"""Percentage points around the level within which coverage counts as right."""
_FEWEST = 20
"""Rows below which a share says little: not flagged, and left out where no split has more."""


@dataclass(frozen=True)
class Held:
    """One cell: share inside and mean width in %, on how many rows; `flag` is "low", "high" or ""."""

    coverage: float
    width: float
    rows: int
    flag: str


@dataclass(frozen=True)
class Sureness:
    """One table: what its lines are of, and one cell per split or None."""

    of: str
    lines: list[tuple[str, list[Held | None]]]


def sureness(evaluation: Evaluation, predictor: str) -> list[Sureness]:
    """Return one table by task, by every slice of makers and by year; empty without intervals."""
    tables = [Sureness("task", _by_task(evaluation, predictor))]
    tables += [Sureness(name, _by_slice(evaluation, predictor, name)) for name in [*maker_slices(evaluation), YEAR]]
    return [table for table in tables if any(cell for _, cells in table.lines for cell in cells)]


def _by_task(evaluation: Evaluation, predictor: str) -> list[tuple[str, list[Held | None]]]:
    lines = []
    for task in [*(evaluation.tasks if len(evaluation.tasks) > 1 else ()), AVERAGE]:
        cells: list[Held | None] = []
        for split in evaluation.splits:
            inside, wide = (evaluation.value(split, predictor, task, metric) for metric in ("coverage", "width"))
            if inside is None or wide is None or not np.isfinite(inside["value"]):
                cells.append(None)
            else:
                cells.append(_held(evaluation, inside["value"], wide["value"], inside["rows"]))
        lines.append(("average over tasks" if task == AVERAGE and len(evaluation.tasks) > 1 else task, cells))
    return lines


def _by_slice(evaluation: Evaluation, predictor: str, name: str) -> list[tuple[str, list[Held | None]]]:
    frame = evaluation.slices
    frame = frame[(frame["slice"] == name) & (frame["predictor"] == predictor) & frame["coverage"].notna()]
    counts = frame.groupby("value")["rows"].max()
    values = sorted(counts.index) if name == YEAR else counts.sort_values(ascending=False, kind="stable").index
    cells = {
        (row["split"], row["value"]): _held(evaluation, row["coverage"], row["width"], row["rows"])
        for row in frame.to_dict("records")
    }
    return [
        (str(value), [cells.get((split, value)) for split in evaluation.splits])
        for value in values
        if counts[value] >= _FEWEST
    ]


def _held(evaluation: Evaluation, coverage: float, width: float, rows: int) -> Held:
    off = coverage - 100 * evaluation.level
    flag = "" if abs(off) <= TOLERANCE or rows < _FEWEST else "low" if off < 0 else "high"
    return Held(float(coverage), float(width), int(rows), flag)
