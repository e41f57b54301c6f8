"""Predictions that were made outside the package: a file is checked, and gets the row of the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import draw_weights, percentile_interval
from perfcast.evaluation.evaluate_runs import Result, compute_metrics
from perfcast.evaluation.run_predictions import CENTER, HALF_WIDTH
from perfcast.evaluation.supplementary_tables import predicts_shares
from perfcast.experiment.task_export import list_expected, split_digest
from perfcast.schema.table import Role, Table
from perfcast.schema.table_files import read_parquet
from perfcast.splits import split_version
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError

METRICS = ("mape", "medape", "interval_score", "coverage")
"""Metrics of a row of the board."""
_COMPARED = ("mape", "medape", "interval_score")
COLUMNS = [
    "dataset",
    "dataset_version",
    "split",
    "split_version",
    "predictor",
    "seeds",
    "task",
    "metric",
    "value",
    "low",
    "high",
    "rows",
    "cpu_seconds",
    "against",
    "difference",
    "difference_low",
    "difference_high",
]
_AGAIN = "write the file again as the loader of the task does"
_NUMBERS = ("point", "low", "high")


@dataclass(frozen=True)
class Submission:
    """Checked predictions of one split.

    Shapes: `frame` has one row per seed and test score, with the columns that `compute_metrics` reads.
    """

    split: str
    frame: pd.DataFrame
    cpu_seconds: float


def read_submission(path: Path, table: Table, splits: Mapping[str, pd.DataFrame], outlier: float | None) -> Submission:
    """Read and check a file of predictions.

    Args:
        splits: The subset of every row in every fold by split, as `read_split` returns them.
        outlier: `label_outlier` of the dataset.

    Raises: UserError for the first rule that the file breaks.
    """
    if not path.is_file():
        raise UserError(f"{path} must exist", "there is no such file", "name a file of predictions")
    try:
        frame = read_parquet(path, ("row", "point", "split_sha256"))
    except UserError as error:
        # the usual remedy is a run of the pipeline, which does not make this file
        raise UserError(error.requirement, error.fact, _AGAIN) from None
    split = _find_split(path, frame, splits)
    targets = table.select(role=Role.TARGET)
    if "target" not in frame and len(targets) == 1:
        frame = frame.assign(target=targets[0])
    if "target" not in frame:
        raise UserError(f"{path} must have the column target", f"there are {len(targets)} targets", _AGAIN)
    if ("low" in frame) != ("high" in frame):
        raise UserError(f"{path} must have low and high, or none of both", "it has one of them", _AGAIN)
    frame = frame.assign(row=frame["row"].astype("str"), seed=frame.get("seed", 0))
    _check_numbers(path, frame)
    expected = pd.concat(
        [
            list_expected(table, splits[split][fold].to_numpy(dtype=object), outlier).assign(fold=number)
            for number, fold in enumerate(splits[split])
        ]
    )
    _check_rows(path, frame, expected)
    scored = frame.merge(expected, on=["row", "target"]).rename(columns={"point": "predicted"})
    half = np.log(scored["high"] / scored["low"]) / 2 if "low" in scored else np.nan
    center = np.sqrt(scored["high"] * scored["low"]) if "low" in scored else scored["predicted"]
    scored = scored.assign(**{HALF_WIDTH: half, CENTER: center})
    seconds = float(frame["cpu_seconds"].iloc[0]) if "cpu_seconds" in frame else np.nan
    # the order of the rows of a run, by which sums are equal to the last digit
    ordered = scored.sort_values(["seed", "task", "target", "row"], kind="stable", ignore_index=True)
    return Submission(split, ordered, seconds)


def _find_split(path: Path, frame: pd.DataFrame, splits: Mapping[str, pd.DataFrame]) -> str:
    """Return the split whose file has the digest of a submission."""
    stated = sorted(set(frame["split_sha256"].astype("str")))
    digests = {split_digest(subsets): name for name, subsets in splits.items()}
    if len(stated) != 1:
        raise UserError(f"split_sha256 of {path} must be one value", f"it has {len(stated)}", _AGAIN)
    if stated[0] not in digests:
        known = ", ".join(f"{name} {digest[:12]}" for digest, name in digests.items())
        remedy = "export the task again, and predict its rows"
        raise UserError(f"split_sha256 of {path} must be that of {known}", f"it is {stated[0][:12]!r}", remedy)
    return digests[stated[0]]


def _check_numbers(path: Path, frame: pd.DataFrame) -> None:
    """Check that predictions are positive, and intervals in order."""
    for name in _NUMBERS:
        if name not in frame:
            continue
        values = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)
        bad = ~(np.isfinite(values) & (values > 0))
        if bad.any():
            first = frame.loc[bad].iloc[0]
            fact = f"it is {first[name]} in row {first['row']}"
            raise UserError(f"{name} of {path} must be positive and finite", fact, "predict every row")
    if "low" in frame and (above := frame["low"] > frame["high"]).any():
        first = frame[above].iloc[0]
        fact = f"they are {first['low']:g} and {first['high']:g} in row {first['row']}"
        raise UserError(f"low of {path} must be at most high", fact, "sort the two")


def _check_rows(path: Path, frame: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Check that a submission has every test score once for each seed, and no other."""
    keys = ["row", "target"]
    repeated = frame.duplicated([*keys, "seed"])
    if repeated.any():
        fact = f"{int(repeated.sum())} are repeated, as {frame.loc[repeated, 'row'].iloc[0]}"
        raise UserError(f"row ids of {path} must be unique", fact, "leave one of each")
    wanted = pd.MultiIndex.from_frame(expected[keys])
    for _, part in frame.groupby("seed"):
        given = pd.MultiIndex.from_frame(part[keys])
        missing = wanted.difference(given)
        other = given.difference(wanted)
        if len(missing):
            fact = f"{len(missing)} of {len(wanted)} are missing, as {missing[0][0]}"
            raise UserError(f"{path} must have all test rows of its split", fact, "predict them")
        if len(other):
            fact = f"{len(other)} are not, as {other[0][0]}"
            raise UserError(f"rows of {path} must be test rows of its split", fact, "leave them out")


def score_submissions(
    submissions: Mapping[str, Submission],
    table: Table,
    version: str,
    *,
    against: str | None,
    resamples: int,
    seed: int,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return the rows of the board: columns `COLUMNS`, one row per predictor, task and metric.

    All submissions of a split share the resamples. `low` to `high` is the 95 % bootstrap interval, and the difference
    is to the submission `against`, with its paired interval.
    Units: % and % points.
    Raises: UserError when `against` is none of the submissions, or of another split.
    """
    if against is not None and against not in submissions:
        known = ", ".join(submissions)
        raise UserError(f"--against must be one of {known}", f"it is {against!r}", "give its file too")
    splits = dict.fromkeys(submission.split for submission in submissions.values())
    parts = []
    for split in splits:
        members = {name: each for name, each in submissions.items() if each.split == split}
        entities = pd.Index(sorted(set().union(*[each.frame["entity"].unique() for each in members.values()])))
        weights = draw_weights(len(entities), resamples, seed)
        are_shares = predicts_shares(table)
        results = {
            name: compute_metrics(each.frame, entities, weights, level, are_shares=are_shares)
            for name, each in members.items()
        }
        reference = results.get(against) if against else None
        for name, result in results.items():
            rows = _tabulate(result, reference if name != against else None)
            about = {"dataset": table.dataset, "dataset_version": version, "split": split}
            seeds = " ".join(str(value) for value in sorted(members[name].frame["seed"].unique()))
            frame = rows.assign(**about, split_version=split_version(split), predictor=name, seeds=seeds)
            frame["cpu_seconds"] = members[name].cpu_seconds
            frame["against"] = against if reference is not None and name != against else ""
            parts.append(frame)
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def _tabulate(result: Result, reference: Result | None) -> pd.DataFrame:
    """Return a row per task and metric, with the differences to a reference."""
    rows: list[dict[str, object]] = []
    for task, by_metric in result.tasks.items():
        clusters = result.counts[task]["entities"]
        for metric in METRICS:
            draws = by_metric[metric]
            if not np.isfinite(draws.value):
                continue
            low, high = percentile_interval(draws.draws, clusters)
            row = {"task": task, "metric": metric, "value": draws.value, "low": low, "high": high}
            row["rows"] = result.counts[task]["rows"]
            if reference is not None and metric in _COMPARED:
                other = reference.tasks[task][metric]
                row["difference"] = draws.value - other.value
                paired = percentile_interval(draws.draws - other.draws, clusters)
                row["difference_low"], row["difference_high"] = paired
            rows.append(row)
    return pd.DataFrame(rows)


def show_board(board: pd.DataFrame) -> tuple[Sequence[str], list[list[str]]]:
    """Return header and cells of the averages over tasks, a row per predictor and split."""
    header = ["predictor", "split", "MAPE %", "MedAPE %", "interval score %", "coverage %", "rows", "CPU s"]
    average = board[board["task"] == "average"]
    lines = []
    for (name, split), part in average.groupby(["predictor", "split"], sort=False):
        values = part.set_index("metric")
        cells = [_cell(values, metric) for metric in METRICS]
        seconds = values["cpu_seconds"].iloc[0]
        lines.append(
            [str(name), str(split), *cells, str(values["rows"].iloc[0]), "-" if np.isnan(seconds) else f"{seconds:.0f}"]
        )
    return header, lines


def _cell(values: pd.DataFrame, metric: str) -> str:
    """Return a metric with its interval, and its difference to the reference."""
    if metric not in values.index:
        return "-"
    row = values.loc[metric]
    text = f"{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
    if pd.notna(row["difference"]):
        text += f", {row['difference']:+.2f} ({row['difference_low']:+.2f} to {row['difference_high']:+.2f})"
    return text
