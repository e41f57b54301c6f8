"""Evaluation of a dataset from the predictions of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import draw_weights
from perfcast.evaluation.evaluation_tables import Evaluation
from perfcast.evaluation.interval_metrics import (
    errors_by_in_domain_score,
    pit_histogram,
)
from perfcast.evaluation.run_predictions import (
    DISSIMILAR_GROUP,
    HALF_WIDTH,
    IN_DOMAIN_SCORE,
    Predictions,
    build_slices,
    read_backtests,
    read_excluded,
    read_predictions,
    with_intervals,
)
from perfcast.evaluation.split_metrics import (
    SplitResults,
    compute_metrics,
    tabulate_metrics,
    tabulate_paired,
    tabulate_slices,
)
from perfcast.evaluation.supplementary_tables import (
    compare_all_rows,
    estimate_noise_floor,
    predicts_shares,
    read_attention,
    read_importance,
    summarize_described,
    tabulate_kind_errors,
    tabulate_published_values,
)
from perfcast.schema.table import Table
from perfcast.schema.table_files import read_parquet
from perfcast.splits import VERSION, check_version
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

POINT_COLUMNS = [
    *("row", "task", "target", "measured", "predicted"),
    *("half_width", "in_domain_score", "least_similar_group"),
]
_TESTED = ["row", "target"]
"""Columns that name a test row and its score."""


def _check_same_rows(split: str, members: Sequence[Predictions]) -> None:
    """Raise a UserError when predictors of one split were tested on different rows, whose errors cannot be compared."""
    tested = [run.frame[_TESTED].drop_duplicates().sort_values(_TESTED, ignore_index=True) for run in members]
    for member, rows in zip(members[1:], tested[1:], strict=True):
        if not rows.equals(tested[0]):
            raise UserError(
                f"all predictors of the split {split!r} must be tested on the same rows",
                f"{member.predictor} has {len(rows)} and {members[0].predictor} {len(tested[0])}, or other ones",
                "train both again",
            )


def _points(run: Predictions) -> pd.DataFrame:
    """Return one point per test row and target, the geometric mean over seeds."""
    frame = run.frame.assign(predicted=np.log(run.frame["predicted"]))
    by_row = frame.groupby(["task", "target", "row"], sort=True)
    points = by_row[["measured", "predicted", HALF_WIDTH, IN_DOMAIN_SCORE]].mean()
    points["predicted"] = np.exp(points["predicted"])
    points = points.astype("float32")
    points[DISSIMILAR_GROUP] = by_row[DISSIMILAR_GROUP].first()
    return points.reset_index()[POINT_COLUMNS]


TableFunction = Callable[..., pd.DataFrame]
OF_SPLITS: Mapping[str, Callable[[SplitResults], pd.DataFrame]] = {
    "metrics": tabulate_metrics,
    "slices": tabulate_slices,
    "paired": tabulate_paired,
}
"""Tables of the predictors of one split, which are compared with each other."""
OF_RUNS: Mapping[str, Callable[[Predictions], pd.DataFrame]] = {
    "points": _points,
    "history": lambda run: run.history,
    "all_rows": lambda run: compare_all_rows(run.frame, read_excluded(run.folder)),
    "in_domain": lambda run: errors_by_in_domain_score(run.frame),
    "pit": lambda run: pit_histogram(run.frame),
    "importance": lambda run: read_importance(run.folder),
    "attention": lambda run: read_attention(run.folder),
}
"""Tables of one run, to which the columns `split` and `predictor` are added in front."""
OF_DATASETS: Mapping[str, TableFunction] = {
    "noise": estimate_noise_floor,
    "published": tabulate_published_values,
    "described": summarize_described,
    "kinds": tabulate_kind_errors,
}
"""Tables of the points and the table of a dataset, with options. Those of a domain are of this sort."""
TABLES = (*OF_SPLITS, *OF_RUNS, *OF_DATASETS)


def evaluate(
    runs: Mapping[tuple[str, str], Path],
    table: Table,
    *,
    resamples: int,
    seed: int,
    level: float = LEVEL,
    in_domain: Mapping[str, Path] = MappingProxyType({}),
    published: Sequence[Mapping[str, Any]] = (),
    described: pd.DataFrame | None = None,
    tables: Mapping[str, TableFunction] = MappingProxyType({}),
) -> Evaluation:
    """Evaluate every run of one dataset.

    Metrics are computed per seed, folds pooled, and averaged over seeds; intervals are 95 % bootstrap intervals
    clustered by entity, with the same resamples for all predictors of a split.

    Args:
        runs: (split, predictor) -> folder of the run.
        level: Level of the intervals of predictions.
        in_domain: Split -> its distances: its predictions get intervals, calibrated on the backtests of the run.
        published: What others published, see `tabulate_published_values`.
        described: Predictions of described machines, see `summarize_described`.
        tables: Further tables, each made from the points and the table of the dataset.

    Raises:
        UserError: There are no runs, predictors of one split were tested on different rows, a run is of another
            version of its split, or a published value is of no task of the table.
    """
    if not runs:
        raise UserError("an evaluation must have runs", "there are none", "name splits and predictors in params.yaml")
    slices, are_shares = build_slices(table), predicts_shares(table)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in (*OF_SPLITS, *OF_RUNS)}
    for split in dict.fromkeys(split for split, _ in runs):
        folders = {predictor: folder for (of, predictor), folder in runs.items() if of == split}
        members = _read_runs(split, folders, in_domain.get(split), level)
        _check_same_rows(split, members)
        entities = pd.Index(sorted(set().union(*[run.frame["entity"].unique() for run in members])))
        weights = draw_weights(len(entities), resamples, seed)
        results = {
            run.predictor: compute_metrics(run.frame, entities, weights, level, are_shares=are_shares)
            for run in members
        }
        scores = SplitResults(split, members, results, slices, entities, weights, level, are_shares)
        for name, of_split in OF_SPLITS.items():
            parts[name].append(of_split(scores))
        for name, of_run in OF_RUNS.items():
            parts[name] += [of_run(run).assign(split=split, predictor=run.predictor) for run in members]
    made = {name: _stack(frames) for name, frames in parts.items()}
    made |= {name: made[name][["split", "predictor", *made[name].columns[:-2]]] for name in OF_RUNS}
    options: dict[str, dict[str, Any]] = {
        "published": {"entries": published},
        "described": {"predictions": described, "level": level},
        "kinds": {"resamples": resamples, "seed": seed},
    }
    for name, tabulate in {**tables, **OF_DATASETS}.items():
        made[name] = tabulate(made["points"], table, **options.get(name, {}))
    return Evaluation(table.dataset, made, resamples, seed, level)


def _stack(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return frames below each other; those without rows have no say in the types of columns."""
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def _read_runs(split: str, folders: Mapping[str, Path], in_domain: Path | None, level: float) -> list[Predictions]:
    """Return the runs of a split by predictor, with intervals."""
    far = None if in_domain is None else read_parquet(in_domain, ("fold", "backtest", "row"))
    members = []
    for predictor, folder in folders.items():
        if (record := Path(folder) / "record.json").is_file():
            check_version(split, int(read_object(record).get(VERSION, 1)), record)
        run = read_predictions(split, predictor, folder)
        members.append(replace(run, frame=with_intervals(run.frame, read_backtests(folder), far, level)))
    return members
