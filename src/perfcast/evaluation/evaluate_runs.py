"""Evaluation of a dataset from the predictions of its runs: metrics by split, by task and by slice, all tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import (
    PAIRED_COLUMNS,
    Draws,
    Scored,
    compare,
    draw_weights,
    mean_of_finite,
    percentile_interval,
    score,
)
from perfcast.evaluation.evaluation_tables import AVERAGE, BASELINE, Evaluation
from perfcast.evaluation.run_predictions import (
    CENTER,
    DISSIMILAR_GROUP,
    HALF_WIDTH,
    IN_DOMAIN_SCORE,
    Predictions,
    attach_slices,
    build_slices,
    errors_by_in_domain_score,
    interval_scores,
    interval_widths,
    is_covered,
    pit_histogram,
    read_backtests,
    read_predictions,
    with_intervals,
)
from perfcast.evaluation.supplementary_tables import (
    estimate_noise_floor,
    predicts_shares,
    read_importance,
    summarize_described,
)
from perfcast.schema.metric_names import METRICS, POINTS
from perfcast.schema.table import Table
from perfcast.schema.table_files import read_parquet
from perfcast.splits import VERSION, check_version
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

METRIC_COLUMNS = [
    "split",
    "predictor",
    "task",
    "metric",
    "value",
    "low",
    "high",
    "seed_sd",
    "rows",
    "entities",
    "seeds",
]
SLICE_COLUMNS = [
    "split",
    "predictor",
    "slice",
    "value",
    "mape",
    "low",
    "high",
    "medape",
    "mae",
    "coverage",
    "width",
    "interval_score",
    "rows",
    "entities",
]
_SCORED = {
    "measured": "measured",
    "predicted": "predicted",
    "target": "code",
    "cluster": "cluster",
    "half": HALF_WIDTH,
}
"""Column of each array of `Scored`."""


class MetricDraws(NamedTuple):
    """One metric, its draws averaged over seeds, and its value per seed."""

    value: float
    draws: np.ndarray
    by_seed: np.ndarray

    @property
    def seed_sd(self) -> float:
        """Standard deviation over seeds; NaN when there is one."""
        return float(self.by_seed.std(ddof=1)) if len(self.by_seed) > 1 else np.nan


@dataclass(frozen=True)
class Result:
    """Metrics of one predictor on one split: task -> metric -> draws."""

    tasks: dict[str, dict[str, MetricDraws]]
    counts: dict[str, dict[str, int]]


@dataclass(frozen=True)
class SplitResults:
    """Metrics of every predictor on one split, and what they were computed from.

    Shapes: `slices` as `build_slices`, `weights` (resamples, len(entities)) as `draw_weights`.
    """

    name: str
    runs: Sequence[Predictions]
    results: Mapping[str, Result]
    slices: pd.DataFrame
    entities: pd.Index
    weights: np.ndarray
    level: float
    are_shares: bool

    def by_task(self) -> Iterator[tuple[str, dict[str, dict[str, Draws]], int]]:
        """Yield every task, the value and draws of its metrics by predictor, and the number of its entities."""
        first = self.results[self.runs[0].predictor]
        for task in first.tasks:
            draws = {
                name: {metric: (values.value, values.draws) for metric, values in result.tasks[task].items()}
                for name, result in self.results.items()
            }
            yield task, draws, first.counts[task]["entities"]


def compute_metrics(
    frame: pd.DataFrame, entities: pd.Index, weights: np.ndarray, level: float, *, are_shares: bool = False
) -> Result:
    """Return the metrics of one predictor per task, and their average over tasks.

    Shapes: `frame` as `with_intervals` returns it, with the column CENTER where intervals are not centered on the
    prediction in logarithms; `weights` (resamples, len(entities)) as `draw_weights`;
    `level` is that of its intervals. Scores that are shares have the metrics in points too.
    """
    metrics = (*POINTS, *METRICS) if are_shares else METRICS
    columns = {**_SCORED, "center": CENTER} if CENTER in frame else _SCORED
    frame = frame.assign(cluster=entities.get_indexer(pd.Index(frame["entity"])), code=pd.factorize(frame["target"])[0])
    tasks: dict[str, dict[str, MetricDraws]] = {}
    counts: dict[str, dict[str, int]] = {}
    for task, part in frame.groupby("task", sort=True):
        groups = (group for _, group in part.groupby("seed", sort=True))
        arrays = ({name: group[column].to_numpy() for name, column in columns.items()} for group in groups)
        seeds = [score(Scored(**each, level=level, are_shares=are_shares), weights) for each in arrays]
        tasks[str(task)] = {}
        for metric in metrics:
            values = np.array([values[metric] for values, _ in seeds])
            draws = mean_of_finite(np.array([draws[metric] for _, draws in seeds]))
            tasks[str(task)][metric] = MetricDraws(float(mean_of_finite(values)), draws, values)
        counts[str(task)] = _counts(part)
    tasks[AVERAGE] = {metric: _average([by_metric[metric] for by_metric in tasks.values()]) for metric in metrics}
    counts[AVERAGE] = _counts(frame)
    return Result(tasks, counts)


def _average(by_task: Sequence[MetricDraws]) -> MetricDraws:
    """Average one metric over the tasks that have it.

    A resample in which one of them has no row is NaN, because its average would be over fewer tasks.
    """
    known = [part for part in by_task if np.isfinite(part.value)]
    if not known:
        return by_task[0]
    draws = np.array([part.draws for part in known])
    by_seed = np.array([part.by_seed for part in known])
    return MetricDraws(float(np.mean([part.value for part in known])), draws.mean(axis=0), by_seed.mean(axis=0))


def _counts(part: pd.DataFrame) -> dict[str, int]:
    return {
        "rows": int((~part.duplicated(["row", "target"])).sum()),
        "entities": int(part["entity"].nunique()),
        "seeds": int(part["seed"].nunique()),
    }


def tabulate_metrics(split: SplitResults) -> pd.DataFrame:
    """Return a row per predictor, task and metric: columns METRIC_COLUMNS."""
    rows = []
    for predictor, result in split.results.items():
        for task, by_metric in result.tasks.items():
            counts = result.counts[task]
            for metric, draws in by_metric.items():
                interval = percentile_interval(draws.draws, counts["entities"])
                row = (split.name, predictor, task, metric, draws.value, *interval, draws.seed_sd)
                rows.append((*row, *counts.values()))
    return pd.DataFrame(rows, columns=METRIC_COLUMNS)


def tabulate_paired(split: SplitResults) -> pd.DataFrame:
    """Return the differences to the baseline and to the best predictor, see `compare`: columns PAIRED_COLUMNS."""
    rows = [row for task in split.by_task() for row in compare(split.name, *task, BASELINE)]
    return pd.DataFrame(rows, columns=PAIRED_COLUMNS)


def tabulate_slices(split: SplitResults) -> pd.DataFrame:
    """Return the errors by the values of every slice: columns SLICE_COLUMNS."""
    return pd.concat([_slices_of(run, split) for run in split.runs], ignore_index=True)


def _slices_of(run: Predictions, split: SplitResults) -> pd.DataFrame:
    """Return the errors by the values of every slice, tasks and seeds pooled.

    The interval is that of the mean error: of shares the MAE, else the MAPE.
    """
    frame = run.frame
    are_shares = split.are_shares
    entities = split.entities
    slices = attach_slices(frame, split.slices)
    points = (100 * (frame["predicted"] - frame["measured"]).abs()).to_numpy()
    errors = points / frame["measured"].to_numpy()
    leading = points if are_shares else errors
    inside = is_covered(frame)
    widths = interval_widths(frame)
    scores = interval_scores(frame, split.level)
    clusters = entities.get_indexer(pd.Index(frame["entity"]))
    measured = frame.groupby(["row", "target"], sort=False).ngroup().to_numpy()
    weights = split.weights.astype(float)  # once: every product with whole numbers would convert them again
    rows = []
    for name in slices.columns:
        for value, index in slices.groupby(name, sort=True).indices.items():
            count = np.bincount(clusters[index], minlength=len(entities))
            total = np.bincount(clusters[index], weights=leading[index], minlength=len(entities))
            n_entities = int((count > 0).sum())
            with np.errstate(invalid="ignore"):
                low, high = percentile_interval((weights @ total) / (weights @ count), n_entities)
            mae = points[index].mean() if are_shares else np.nan
            row = (run.split, run.predictor, name, value, errors[index].mean(), low, high)
            sure = 100 * inside[index].mean(), np.median(widths[index]), scores[index].mean()
            rows.append((*row, np.median(errors[index]), mae, *sure, len(np.unique(measured[index])), n_entities))
    return pd.DataFrame(rows, columns=SLICE_COLUMNS)


POINT_COLUMNS = [
    "row",
    "task",
    "target",
    "measured",
    "predicted",
    "half_width",
    "in_domain_score",
    "least_similar_group",
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
    "in_domain": lambda run: errors_by_in_domain_score(run.frame),
    "pit": lambda run: pit_histogram(run.frame),
    "importance": lambda run: read_importance(run.folder),
}
"""Tables of one run, to which the columns `split` and `predictor` are added in front."""
OF_DATASETS: Mapping[str, TableFunction] = {
    "noise": estimate_noise_floor,
}
"""Tables of the points and the table of a dataset. Those of a domain are of this sort."""
DESCRIBED = "described"
"""Table of machines that were predicted as users describe them."""
TABLES = (*OF_SPLITS, *OF_RUNS, *OF_DATASETS, DESCRIBED)


def evaluate(
    runs: Mapping[tuple[str, str], Path],
    table: Table,
    *,
    resamples: int,
    seed: int,
    level: float = LEVEL,
    in_domain: Mapping[str, Path] = MappingProxyType({}),
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
        described: Predictions of described machines, see `summarize_described`.
        tables: Further tables, each made from the points and the table of the dataset.

    Raises:
        UserError: There are no runs, predictors of one split were tested on different rows, or a run is of
            another version of its split.
    """
    if not runs:
        raise UserError("an evaluation must have runs", "there are none", "name splits and predictors in params.yaml")
    slices = build_slices(table)
    are_shares = predicts_shares(table)
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
    for name, tabulate in {**tables, **OF_DATASETS}.items():
        made[name] = tabulate(made["points"], table)
    made[DESCRIBED] = summarize_described(described, level)
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
