"""Supplementary tables of an evaluation: all rows, noise floor, published values, importance and attention maps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation.evaluation_tables import AVERAGE, PUBLISHED_COLUMNS
from perfcast.schema.metric_names import METRICS
from perfcast.schema.table import Role, Table, Tag
from perfcast.schema.table_files import read_csv
from perfcast.utils.errors import UserError

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


def tabulate_published_values(entries: Sequence[Mapping[str, Any]], tasks: Collection[str]) -> pd.DataFrame:
    """Return one line per published value: columns PUBLISHED_COLUMNS.

    Each entry has the method (`what`), the `split` whose test rows are drawn alike, the `citation`, and under the
    name of any of METRICS a mapping from task, or "average" for the mean over them, to the value. Units: as the metric.
    Raises: UserError when a task is none of `tasks`.
    """
    rows = []
    for entry in entries:
        for metric in METRICS:
            for task, value in entry.get(metric, {}).items():
                if task not in tasks and task != AVERAGE:
                    raise UserError(
                        f"a published {metric} must be of one of {', '.join(sorted(tasks))} or of the {AVERAGE}",
                        f"{entry['what']!r} has one of {task!r}",
                        "edit `published` in the conf of the dataset",
                    )
                rows.append(
                    (
                        entry["what"],
                        entry["split"],
                        task,
                        metric,
                        float(value),
                        entry["citation"],
                        entry.get("predictor", ""),
                    )
                )
    return pd.DataFrame(rows, columns=PUBLISHED_COLUMNS)


ALL_ROWS_COLUMNS = ["split", "predictor", "task", "mape", "mape_all_rows", "rows", "excluded"]


def compare_all_rows(split: str, predictor: str, evaluated: pd.DataFrame, excluded: pd.DataFrame) -> pd.DataFrame:
    """Return the MAPE of a run without and with the excluded test rows, by task and on average: ALL_ROWS_COLUMNS.

    Seeds are averaged, then tasks, as in the metrics. `rows` counts evaluated rows and targets, `excluded` the others.
    Shapes: `evaluated` and `excluded` as `read_predictions`. Units: %.
    """
    kinds = pd.concat([evaluated.assign(is_excluded=False), excluded.assign(is_excluded=True)], ignore_index=True)
    errors = kinds.assign(error=100 * (kinds["predicted"].astype(float) / kinds["measured"].astype(float) - 1).abs())
    is_excluded = errors["is_excluded"].astype(bool)
    means = [
        part.groupby(["task", "seed"])["error"].mean().groupby("task").mean() for part in (errors[~is_excluded], errors)
    ]
    out = is_excluded[~errors.duplicated(["task", "row", "target"])].groupby(errors["task"])
    frame = pd.DataFrame(
        {"mape": means[0], "mape_all_rows": means[1], "rows": out.size() - out.sum(), "excluded": out.sum()}
    )
    frame = frame.rename_axis("task").reset_index().assign(split=split, predictor=predictor)[ALL_ROWS_COLUMNS]
    frame["task"] = frame["task"].astype(str)
    total = {**dict(frame[["mape", "mape_all_rows"]].mean()), **dict(frame[["rows", "excluded"]].sum())}
    frame.loc[len(frame)] = {"split": split, "predictor": predictor, "task": AVERAGE, **total}
    return frame.astype({"rows": int, "excluded": int})


IMPORTANCE_COLUMNS = ["split", "predictor", "group", "mape", "increase"]
ATTENTION_COLUMNS = ["split", "predictor", "group", "asks", "looks_at", "share"]
BETWEEN = "between_groups"
"""The name, in the column `group`, of the map between groups."""


def read_importances(runs: Mapping[tuple[str, str], Path]) -> pd.DataFrame:
    """Return the grouped permutation importance of every run that has one: columns IMPORTANCE_COLUMNS."""
    frames = [
        read_csv(path).assign(split=split, predictor=predictor)
        for (split, predictor), folder in runs.items()
        if (path := folder / "explanation" / "importance.csv").is_file()
    ]
    return _stacked(frames, IMPORTANCE_COLUMNS)


def read_attentions(runs: Mapping[tuple[str, str], Path]) -> pd.DataFrame:
    """Return the attention maps of every run that has some, one line per cell: columns ATTENTION_COLUMNS."""
    frames = []
    for (split, predictor), folder in runs.items():
        for path in sorted((folder / "explanation").glob("attention_*.csv")):
            shares = read_csv(path)
            shares.columns = pd.Index(["asks", *shares.columns[1:]])
            group = path.stem.removeprefix("attention_")
            cells = shares.melt(id_vars="asks", var_name="looks_at", value_name="share")
            frames.append(cells.assign(split=split, predictor=predictor, group=group))
    return _stacked(frames, ATTENTION_COLUMNS)


def _stacked(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
