"""Supplementary tables: noise floor, published values, described machines, all rows, explanations, kinds of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import Scored, draw_weights, explained_variance, percentile_interval
from perfcast.evaluation.evaluation_tables import AVERAGE
from perfcast.schema.metric_names import METRICS
from perfcast.schema.table import TASK_KIND, Role, Table, Tag, select
from perfcast.schema.table_files import read_csv
from perfcast.utils.errors import UserError

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


PUBLISHED_COLUMNS = ["what", "split", "task", "metric", "value", "citation", "predictor"]


def tabulate_published_values(
    points: pd.DataFrame, table: Table, *, entries: Sequence[Mapping[str, Any]] = ()
) -> pd.DataFrame:
    """Return one line per published value: columns PUBLISHED_COLUMNS.

    Each entry has the method (`what`), the `split` whose test rows are drawn alike, the `citation`, and under the
    name of any of METRICS a mapping from task, or "average" for the mean over them, to the value. Units: as the metric.
    Raises: UserError when a task is not in the table.
    """
    tasks = set(_tasks_of(points, table).dropna().astype(str))
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
                source = entry["citation"], entry.get("predictor", "")
                rows.append((entry["what"], entry["split"], task, metric, float(value), *source))
    return pd.DataFrame(rows, columns=PUBLISHED_COLUMNS)


DESCRIBED_COLUMNS = [
    *("split", "facts", "level", "task", "n", "mape", "medape"),
    *("coverage", "width", "interval_score"),
]
"""`facts`: which facts of processors count, those at the cut of a forward split or all. `level`: from 1, the name
alone, to the last one, everything that is published. `n`: rows. `width`: the median width of the interval."""

LEVEL_LABELS = ("name", "and chips", "and memory", "the data sheet", "everything published")
"""Names of the levels of description."""

_DESCRIPTION = ["split", "facts", "level"]


def summarize_described(
    points: pd.DataFrame, table: Table, *, predictions: pd.DataFrame | None, level: float
) -> pd.DataFrame:
    """Return metrics by split, facts, level of description and task, and their average over tasks.

    Shapes: `predictions` as `predict_described_fold` -> DESCRIBED_COLUMNS; no row without predictions.
    Units: mape, medape and coverage in %, width in % of the prediction, interval_score in % of the measured score.
    """
    del points, table
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


ALL_ROWS_COLUMNS = ["task", "mape", "mape_all_rows", "rows", "excluded"]


def compare_all_rows(evaluated: pd.DataFrame, excluded: pd.DataFrame) -> pd.DataFrame:
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
    frame = frame.rename_axis("task").reset_index()[ALL_ROWS_COLUMNS]
    frame["task"] = frame["task"].astype(str)
    total = {**dict(frame[["mape", "mape_all_rows"]].mean()), **dict(frame[["rows", "excluded"]].sum())}
    frame.loc[len(frame)] = {"task": AVERAGE, **total}
    return frame.astype({"rows": int, "excluded": int})


IMPORTANCE_COLUMNS = ["group", "mape", "increase"]
ATTENTION_COLUMNS = ["group", "asks", "looks_at", "share"]
BETWEEN = "between_groups"
"""The name, in the column `group`, of the map between groups."""


def read_importance(folder: Path) -> pd.DataFrame:
    """Return the grouped permutation importance of a run: columns IMPORTANCE_COLUMNS, no row without one."""
    path = folder / "explanation" / "importance.csv"
    return read_csv(path)[IMPORTANCE_COLUMNS] if path.is_file() else pd.DataFrame(columns=IMPORTANCE_COLUMNS)


def read_attention(folder: Path) -> pd.DataFrame:
    """Return the attention maps of a run, one line per cell: columns ATTENTION_COLUMNS, no row without maps."""
    frames = [pd.DataFrame(columns=ATTENTION_COLUMNS)]
    for path in sorted((folder / "explanation").glob("attention_*.csv")):
        shares = read_csv(path)
        shares.columns = pd.Index(["asks", *shares.columns[1:]])
        cells = shares.melt(id_vars="asks", var_name="looks_at", value_name="share")
        frames.append(cells.assign(group=path.stem.removeprefix("attention_"))[ATTENTION_COLUMNS])
    return pd.concat(frames[1:] or frames, ignore_index=True)


KIND_COLUMNS = [
    *("split", "predictor", "kind", "slice", "value", "unit", "mean", "low", "high", "median", "signed"),
    *("r2", "r2_low", "r2_high", "coverage", "width", "rows", "runs"),
]
"""`slice` and `value`: rows of one value of a slice, "" for all rows. `mean`, `median` and `signed` error (predicted
minus measured) and median `width` of the intervals, all in `unit`; `low` to `high`: 95 % bootstrap interval of the
mean, clustered by run, and `r2_low` to `r2_high` that of R2; `coverage` of the intervals in %."""
POINTS, PERCENT = "points", "%"

_SHARE, _SHARE_UNIT = "accuracy", "share"


def predicts_shares(table: Table) -> bool:
    """Return whether the targets are shares by their units: their errors are in points, not in per cent."""
    targets = select(table.columns, role=Role.TARGET)
    return bool(targets) and all(column.unit.startswith(_SHARE_UNIT) for column in targets)


def tabulate_kind_errors(points: pd.DataFrame, table: Table, *, resamples: int, seed: int) -> pd.DataFrame:
    """Return the errors of every split, predictor and kind; no row for a table without kinds.

    Accuracies and other shares of 1 are in points, losses and bits per byte in %: a mean of percentages over both means
    little, because an accuracy of 2 % that is predicted as 4 % has an error of 100 %, or of two points.
    The mean is that of the rows. Kinds are shares where the unit of the target says so; of those, every SLICE column
    has rows too.
    Shapes: `points` as in `Evaluation` -> KIND_COLUMNS.
    """
    blocks = table.select(tag=Tag.BLOCK)
    if TASK_KIND not in table.frame or not blocks or points.empty:
        return pd.DataFrame(columns=KIND_COLUMNS)
    places = pd.Index(table.frame[table.column_of(Tag.ROW)]).get_indexer(pd.Index(points["row"]))
    known = table.frame.iloc[places]
    runs = known[blocks].astype(str).agg("\x1f".join, axis=1).to_numpy()
    frame = points.assign(kind=known[TASK_KIND].astype(str).to_numpy(), run=runs)
    are_shares = predicts_shares(table)
    slices = {"": np.full(len(frame), "")}
    if are_shares:
        slices |= {name: known[name].astype(str).to_numpy() for name in table.select(tag=Tag.SLICE)}
    by = ["split", "predictor", "kind", "value"]
    rows = [
        {
            **dict(zip(by, key, strict=True)),
            "slice": name,
            **_summarize(part, are_shares or str(key[2]).startswith(_SHARE), resamples, seed),
        }
        for name, values in slices.items()
        for key, part in frame.assign(value=values).groupby(by, sort=False)
    ]
    return pd.DataFrame(rows, columns=KIND_COLUMNS)


def whole_kinds(kinds: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of all rows of a kind, without those of slices."""
    return kinds[kinds["slice"].isna() | (kinds["slice"] == "")]


def _summarize(part: pd.DataFrame, is_share: bool, resamples: int, seed: int) -> dict[str, object]:
    measured, predicted, half = (part[name].to_numpy(dtype=float) for name in ("measured", "predicted", "half_width"))
    scale = np.ones(len(part)) if is_share else measured
    signed = 100 * (predicted - measured) / scale
    codes, names = pd.factorize(part["run"])
    weights = draw_weights(len(names), resamples, seed)
    counts = weights @ np.bincount(codes, minlength=len(names))
    low, high = percentile_interval(weights @ np.bincount(codes, np.abs(signed), len(names)) / counts, len(names))
    scored = Scored(measured, predicted, np.zeros(len(part), dtype=int), codes, half, np.nan)
    r2, draws = explained_variance(scored, measured, predicted, weights)
    r2_low, r2_high = percentile_interval(draws, len(names))
    inside = np.where(np.isnan(half), np.nan, np.abs(np.log(predicted / measured)) <= half)
    widths = 100 * predicted * (np.exp(half) - np.exp(-half)) / (np.ones(len(part)) if is_share else predicted)
    return {
        **{"unit": POINTS if is_share else PERCENT, "mean": float(np.abs(signed).mean()), "low": low, "high": high},
        **{"median": float(np.median(np.abs(signed))), "signed": float(signed.mean())},
        **{"r2": r2, "r2_low": r2_low, "r2_high": r2_high},
        **{"coverage": 100 * float(inside.mean()), "width": float(np.median(widths))},
        **{"rows": len(part), "runs": len(names)},
    }
