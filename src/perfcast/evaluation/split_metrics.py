"""Metrics of the predictors of one split: by task, by slice, and compared with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import Scored, mean_of_finite, percentile_interval, score
from perfcast.evaluation.evaluation_tables import AVERAGE, BASELINE
from perfcast.evaluation.predictor_comparison import (
    PAIRED_COLUMNS,
    Draws,
    compare,
)
from perfcast.evaluation.run_predictions import (
    HALF_WIDTH,
    Predictions,
    attach_slices,
    interval_scores,
    interval_widths,
    is_covered,
)
from perfcast.schema.metric_names import METRICS, POINTS

METRIC_COLUMNS = [
    *("split", "predictor", "task", "metric", "value", "low", "high", "seed_sd"),
    *("rows", "entities", "seeds"),
]
SLICE_COLUMNS = [
    *("split", "predictor", "slice", "value", "mape", "low", "high", "medape", "mae"),
    *("coverage", "width", "interval_score", "rows", "entities"),
]
_SCORED = {
    **{"measured": "measured", "predicted": "predicted", "target": "code", "cluster": "cluster"},
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

    Shapes: `frame` as `with_intervals` returns it, `weights` (resamples, len(entities)) as `draw_weights`;
    `level` is that of its intervals. Scores that are shares have the metrics in points too.
    """
    metrics = (*POINTS, *METRICS) if are_shares else METRICS
    frame = frame.assign(cluster=entities.get_indexer(pd.Index(frame["entity"])), code=pd.factorize(frame["target"])[0])
    tasks: dict[str, dict[str, MetricDraws]] = {}
    counts: dict[str, dict[str, int]] = {}
    for task, part in frame.groupby("task", sort=True):
        seeds = [
            score(
                Scored(
                    **{name: group[column].to_numpy() for name, column in _SCORED.items()},
                    level=level,
                    are_shares=are_shares,
                ),
                weights,
            )
            for _, group in part.groupby("seed", sort=True)
        ]
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
    draws, by_seed = np.array([part.draws for part in known]), np.array([part.by_seed for part in known])
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
    frame, are_shares, entities = run.frame, split.are_shares, split.entities
    slices = attach_slices(frame, split.slices)
    points = (100 * (frame["predicted"] - frame["measured"]).abs()).to_numpy()
    errors = points / frame["measured"].to_numpy()
    leading = points if are_shares else errors
    inside, widths, scores = is_covered(frame), interval_widths(frame), interval_scores(frame, split.level)
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
