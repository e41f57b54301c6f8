"""Errors by product release: families of later releases by task, since biases of tasks can have opposite signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.evaluation.run_predictions import interval_widths, is_covered
from perfcast.report.report_context import WHEN, Rows

_MIN_ROWS = 5
_QUANTILES = 0.1, 0.9
_ROUND = (5, 10, 20, 30, 40, 50, 75, 100, 200)


@dataclass(frozen=True)
class TaskError:
    """Errors of one family in one task.

    Units: mean_error (positive: predicted too high), mape, low, median and high in % of the measured score; coverage
    and median width of the intervals in %.
    """

    rows: int
    mean_error: float
    mape: float
    low: float
    median: float
    high: float
    coverage: float
    width: float


@dataclass(frozen=True)
class ReleaseError:
    """Errors of one family on one forward split, by task; None where a task has too few results.

    `seen` counts its training rows.
    """

    split: str
    family: str
    vendor: str
    first: str
    seen: int
    rows: int
    tasks: Mapping[str, TaskError | None]

    @property
    def errors(self) -> list[TaskError]:
        """Errors of the tasks with enough results."""
        return [error for error in self.tasks.values() if error is not None]

    @property
    def worst(self) -> float:
        """Largest mean error of a task, either way."""
        return max(abs(error.mean_error) for error in self.errors)


def release_errors(evaluation: Evaluation, rows: Rows, predictor: str) -> dict[str, list[ReleaseError]]:
    """Return, by forward split, new families first, then by the largest bias in a task; empty without such splits.

    A family is new where the training rows have none of its results.
    """
    families = [name for name in evaluation.lineage_slices if name in rows.slices][:1]
    if not families:
        return {}
    by_split = {}
    for split in evaluation.ranked_splits:
        points = evaluation.tables["points"]
        points = points[(points["split"] == split) & (points["predictor"] == predictor)]
        if points.empty or not rows.is_forward(split):
            continue
        lines = [line for name in families for line in _lines(evaluation, rows, points, name)]
        if lines:
            by_split[split] = sorted(lines, key=lambda line: (line.seen > 0, -line.worst, line.family))
    return by_split


def axis_limit(lines: Sequence[ReleaseError]) -> int:
    """Return the limit of the axis of the bars, a round number of % that covers nine in ten of them."""
    ends = sorted(max(abs(error.low), abs(error.high)) for line in lines for error in line.errors)
    covered_end = ends[int(np.ceil(0.9 * (len(ends) - 1)))]
    return next(round_number for round_number in _ROUND if round_number >= min(covered_end, _ROUND[-1]))


def axis_position(error: float, limit: int) -> float:
    """Return the position of an error on an axis from -100 to 100, clipped to its ends."""
    return round(100 * max(-1.0, min(1.0, error / limit)), 1)


def _lines(evaluation: Evaluation, rows: Rows, points: pd.DataFrame, name: str) -> list[ReleaseError]:
    """Return one line per value of a slice that has a task with enough test rows."""
    split = str(points["split"].iloc[0])
    counts = rows.count_training_rows(split, rows.slices[name])
    vendors = evaluation.vendor_slices[:1]
    joined = points.assign(
        family=rows.slices.loc[points["row"], name].to_numpy(),
        vendor=rows.slices.loc[points["row"], vendors[0]].to_numpy() if vendors else "",
        when=rows.names.loc[points["row"], WHEN].to_numpy(),
        seen=counts.reindex(points["row"]).to_numpy(),
        error=100 * (points["predicted"].astype(float) / points["measured"].astype(float) - 1),
    )
    lines = []
    for family, part in joined.groupby("family", sort=True):
        tasks = {task: _task_error(part[part["task"] == task]) for task in evaluation.tasks}
        if not any(tasks.values()):
            continue
        lines.append(
            ReleaseError(
                split=split,
                family=str(family),
                vendor=str(part["vendor"].mode().iloc[0]) if part["vendor"].notna().any() else "",
                first=f"{part['when'].min():%Y-%m}",
                seen=int(part["seen"].min()),
                rows=int(part["row"].nunique()),
                tasks=tasks,
            )
        )
    return lines


def _task_error(points: pd.DataFrame) -> TaskError | None:
    """Return the errors of one family in one task; None where it has too few results."""
    if points["row"].nunique() < _MIN_ROWS:
        return None
    low, median, high = points["error"].quantile([_QUANTILES[0], 0.5, _QUANTILES[1]])
    return TaskError(
        rows=int(points["row"].nunique()),
        mean_error=float(points["error"].mean()),
        mape=float(points["error"].abs().mean()),
        low=float(low),
        median=float(median),
        high=float(high),
        coverage=100 * float(np.mean(is_covered(points))),
        width=float(np.median(interval_widths(points))),
    )
