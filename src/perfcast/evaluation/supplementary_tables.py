"""Supplementary tables: noise floor, described machines, importance of groups of columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.evaluation.evaluation_tables import AVERAGE
from perfcast.schema.table import Role, Table, Tag, select
from perfcast.schema.table_files import read_csv

NOISE_COLUMNS = ["task", "configurations", "rows", "cv_median", "cv_mean", "mape_floor", "medape_floor"]


def estimate_noise_floor(points: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return the spread of repeated results per task, and the error that remains when only the configuration is known.

    Rows equal on every CONFIG column and of one task and target repeat one configuration. `cv_*` are the median and
    mean over configurations of the coefficient of variation; `mape_floor` and `medape_floor` are the mean and median
    absolute percentage error of predicting the expected score of each configuration: deviations from the mean
    of n repetitions, widened by sqrt(n / (n - 1)) because that mean is fitted to the same n results.
    Shapes: `points` as in `Evaluation`. Units: %. Tasks without repetitions are not listed.
    """
    config = table.select(tag=Tag.CONFIG)
    if not config:
        return pd.DataFrame(columns=NOISE_COLUMNS)
    tasks = _tasks_of(points, table)
    configuration = table.frame.groupby(config, dropna=False, sort=False).ngroup()
    repeats = [_repetitions(table.frame[target], configuration, tasks) for target in table.select(role=Role.TARGET)]
    deviations = pd.concat(repeats, ignore_index=True)
    lines = [_summary(task, part) for task, part in deviations.groupby("task", sort=True)]
    if lines:
        frame = pd.DataFrame(lines)
        means = frame.drop(columns=["task", "configurations", "rows"]).mean()
        sums = frame[["configurations", "rows"]].sum()
        lines.append({"task": AVERAGE, **dict(sums), **dict(means)})
    return pd.DataFrame(lines, columns=NOISE_COLUMNS)


def _tasks_of(points: pd.DataFrame, table: Table) -> pd.Series:
    """Return the task of every row of the table: the TASK column, or the only task when none is declared."""
    names = table.select(tag=Tag.TASK)
    if names:
        return table.frame[names[0]]
    return pd.Series(str(points["task"].iloc[0]), index=table.frame.index)


def _repetitions(scores: pd.Series, configuration: pd.Series, tasks: pd.Series) -> pd.DataFrame:
    """Return the rows whose configuration was measured more than once, with their deviation in %."""
    frame = pd.DataFrame({"score": scores, "configuration": configuration, "task": tasks}).dropna()
    groups = frame.groupby(["task", "configuration"])["score"]
    count = groups.transform("size")
    mean = groups.transform("mean")
    spread = groups.transform("std")
    frame = frame[count > 1]
    count, mean, spread = count[count > 1], mean[count > 1], spread[count > 1]
    deviation = (frame["score"] - mean).abs() / frame["score"] * np.sqrt(count / (count - 1))
    return frame.assign(target=str(scores.name), cv=100 * spread / mean, deviation=100 * deviation)


def _summary(task: object, part: pd.DataFrame) -> dict[str, object]:
    cv = part.drop_duplicates(["target", "configuration"])["cv"]
    return {
        "task": str(task),
        "configurations": len(cv),
        "rows": len(part),
        "cv_median": cv.median(),
        "cv_mean": cv.mean(),
        "mape_floor": part["deviation"].mean(),
        "medape_floor": part["deviation"].median(),
    }


DESCRIBED_COLUMNS = [
    "split",
    "facts",
    "level",
    "task",
    "n",
    "mape",
    "medape",
    "coverage",
    "width",
    "interval_score",
]
"""`facts`: which facts of processors count, those at the cut of a forward split or all. `level`: from 1, the name
alone, to the last one, everything that is published. `n`: rows. `width`: the median width of the interval."""

LEVEL_LABELS = ("name", "and chips", "and memory", "the data sheet", "everything published")
"""Names of the levels of description."""

_DESCRIPTION = ["split", "facts", "level"]


def summarize_described(predictions: pd.DataFrame | None, level: float) -> pd.DataFrame:
    """Return metrics by split, facts, level of description and task, and their average over tasks.

    Shapes: `predictions` as `predict_described_fold` -> DESCRIBED_COLUMNS; no row without predictions.
    Units: mape, medape and coverage in %, width in % of the prediction, interval_score in % of the measured score.
    """
    if predictions is None or predictions.empty:
        return pd.DataFrame(columns=DESCRIBED_COLUMNS)
    measured, low, high = (predictions[name] for name in ("measured", "low", "high"))
    outside = (low - measured).clip(lower=0) + (measured - high).clip(lower=0)
    rows = predictions[[*_DESCRIPTION, "task"]].assign(
        error=100 * (predictions["predicted"] / measured - 1).abs(),
        inside=100.0 * ((low <= measured) & (measured <= high)),
        width=100 * (high - low) / predictions["predicted"],
        score=100 * (high - low + 2 / (1 - level) * outside) / measured,
    )
    amounts = {"n": ("error", "size"), "mape": ("error", "mean"), "medape": ("error", "median")}
    amounts |= {"coverage": ("inside", "mean"), "width": ("width", "median"), "interval_score": ("score", "mean")}
    by_task = rows.groupby([*_DESCRIPTION, "task"], sort=False).agg(**amounts).reset_index()
    average = by_task.drop(columns="task").groupby(_DESCRIPTION, sort=False, as_index=False).mean()
    total = by_task.groupby(_DESCRIPTION, sort=False)["n"].sum().to_numpy()
    lines = pd.concat([by_task, average.assign(n=total, task=AVERAGE)], ignore_index=True)
    return lines.sort_values([*_DESCRIPTION, "task"], kind="stable", ignore_index=True)[DESCRIBED_COLUMNS]


IMPORTANCE_COLUMNS = ["group", "mape", "increase"]


def read_importance(folder: Path) -> pd.DataFrame:
    """Return the grouped permutation importance of a run: columns IMPORTANCE_COLUMNS, no row without one."""
    path = folder / "explanation" / "importance.csv"
    return read_csv(path)[IMPORTANCE_COLUMNS] if path.is_file() else pd.DataFrame(columns=IMPORTANCE_COLUMNS)


_SHARE_UNIT = "share"


def predicts_shares(table: Table) -> bool:
    """Return whether the targets are shares by their units: their errors are in points, not in per cent."""
    targets = select(table.columns, role=Role.TARGET)
    return bool(targets) and all(column.unit.startswith(_SHARE_UNIT) for column in targets)
