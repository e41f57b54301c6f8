"""Noise floor: spread of repeated results of one configuration."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.evaluation.evaluation_tables import AVERAGE
from perfcast.schema.table import Role, Table, Tag

NOISE_COLUMNS = ["task", "configurations", "rows", "cv_median", "cv_mean", "mape_floor", "medape_floor"]


def estimate_noise_floor(table: Table, tasks: pd.Series) -> pd.DataFrame:
    """Return the spread of repeated results per task, and the error that remains when only the configuration is known.

    Rows equal on every CONFIG column and of one task and target repeat one configuration. `cv_*` are the median and
    mean over configurations of the coefficient of variation; `mape_floor` and `medape_floor` are the mean and median
    absolute percentage error of predicting the expected score of each configuration: deviations from the mean
    of n repetitions, widened by sqrt(n / (n - 1)) because that mean is fitted to the same n results.
    Shapes: `tasks` holds the task of every row of the table. Units: %. Tasks without repetitions are not listed.
    """
    config = table.select(tag=Tag.CONFIG)
    if not config:
        return pd.DataFrame(columns=NOISE_COLUMNS)
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


def _repetitions(scores: pd.Series, configuration: pd.Series, tasks: pd.Series) -> pd.DataFrame:
    """Return the rows whose configuration was measured more than once, with their deviation in %."""
    frame = pd.DataFrame({"score": scores, "configuration": configuration, "task": tasks}).dropna()
    groups = frame.groupby(["task", "configuration"])["score"]
    count, mean, spread = groups.transform("size"), groups.transform("mean"), groups.transform("std")
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
