"""Evaluation of a dataset from the predictions of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perfcast.evaluation.described_metrics import summarize_described
from perfcast.evaluation.error_metrics import Scored, draw_weights, mean_of_finite, percentile_interval, score
from perfcast.evaluation.error_sources import tabulate_error_sources
from perfcast.evaluation.evaluation_tables import (
    AVERAGE,
    BASELINE,
    METRIC_COLUMNS,
    POINT_COLUMNS,
    SLICE_COLUMNS,
    Evaluation,
)
from perfcast.evaluation.interval_metrics import calibration_checks, pit_histogram
from perfcast.evaluation.kind_errors import predicts_shares, tabulate_kind_errors
from perfcast.evaluation.predictor_comparison import PAIR_COLUMNS, PAIRED_COLUMNS, compare, compare_all_pairs
from perfcast.evaluation.run_predictions import (
    DISSIMILAR_GROUP,
    HALF_WIDTH,
    HISTORY_COLUMNS,
    IN_DOMAIN_SCORE,
    Predictions,
    attach_slices,
    build_slices,
    coverage_by_level,
    errors_by_in_domain_score,
    interval_scores,
    interval_widths,
    is_covered,
    read_backtests,
    read_excluded,
    read_predictions,
    with_intervals,
)
from perfcast.evaluation.series import tabulate_series
from perfcast.evaluation.supplementary_tables import (
    compare_all_rows,
    estimate_noise_floor,
    read_attentions,
    read_importances,
    tabulate_published_values,
)
from perfcast.schema.metric_names import METRICS, POINTS
from perfcast.schema.table import Kind, Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.splits import VERSION, check_version
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

_SCORED = {
    **{"measured": "measured", "predicted": "predicted", "target": "code", "cluster": "cluster"},
    "half": HALF_WIDTH,
}
"""Column of each array of `Scored`."""
_TESTED = ["row", "target"]
"""Columns that name a test row and its score."""


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


def evaluate(
    runs: Mapping[tuple[str, str], Path],
    table: Table,
    *,
    resamples: int,
    seed: int,
    published: Sequence[Mapping[str, Any]] = (),
    in_domain: Mapping[str, Path] = MappingProxyType({}),
    described: pd.DataFrame | None = None,
    error_sources: Mapping[str, Sequence[str]] = MappingProxyType({}),
    tables: Mapping[str, Callable[[pd.DataFrame, Table], pd.DataFrame]] = MappingProxyType({}),
    series: Mapping[str, Any] | None = None,
    level: float = LEVEL,
) -> Evaluation:
    """Evaluate every run of one dataset.

    `runs` maps (split, predictor) to the folder of the run. Metrics are computed per seed, folds pooled, and averaged
    over seeds; intervals are 95 % bootstrap intervals clustered by entity, with the same resamples for all predictors
    of a split. `published` are the values that others published, see `tabulate_published_values`. `in_domain` maps a
    split to its distances: its predictions get intervals of `level`, calibrated on the backtests of the run.
    `described` are predictions of described machines, see `summarize_described`. `error_sources` has the columns of
    every step of `tabulate_error_sources`, `series` the lines of `tabulate_series`. `tables` makes further tables from
    the points and the table of the dataset.
    Raises: UserError when there are no runs, predictors of one split were tested on different rows, a run is of another
    version of its split, or a published value is of no task of the table.
    """
    if not runs:
        raise UserError("an evaluation must have runs", "there are none", "name splits and predictors in params.yaml")
    loaded: dict[str, list[Predictions]] = {}
    checks: list[pd.DataFrame] = []
    months = _months(table)
    all_rows: list[pd.DataFrame] = []
    for (split, predictor), folder in runs.items():
        _check_split_version(split, folder)
        predictions = read_predictions(split, predictor, folder)
        distances = read_parquet(in_domain[split], ("fold", "backtest", "row")) if split in in_domain else None
        backtests = read_backtests(folder)
        frame = with_intervals(predictions.frame, backtests, distances, level)
        if distances is not None:
            distances = distances.assign(month=months.reindex(distances["row"]).to_numpy())
        checks.append(calibration_checks(split, predictor, frame, backtests, distances))
        loaded.setdefault(split, []).append(replace(predictions, frame=frame))
        all_rows.append(compare_all_rows(split, predictor, frame, read_excluded(split, predictor, folder)))
    slices = build_slices(table)
    are_shares = predicts_shares(table)
    metrics: list[dict[str, object]] = []
    sliced: list[pd.DataFrame] = []
    paired: list[dict[str, object]] = []
    pairs: list[dict[str, object]] = []
    for split, members in loaded.items():
        _check_same_rows(split, members)
        entities = pd.Index(sorted(set().union(*[member.frame["entity"].unique() for member in members])))
        weights = draw_weights(len(entities), resamples, seed)
        results = {
            member.predictor: compute_metrics(member.frame, entities, weights, level, are_shares=are_shares)
            for member in members
        }
        for member in members:
            metrics += _metric_rows(split, member.predictor, results[member.predictor])
            with_slices = attach_slices(member.frame, slices)
            sliced.append(_slice_rows(member, with_slices, entities, weights, level, are_shares=are_shares))
        for task in next(iter(results.values())).tasks:
            draws = {
                name: {
                    metric: (metric_draws.value, metric_draws.draws)
                    for metric, metric_draws in result.tasks[task].items()
                }
                for name, result in results.items()
            }
            clusters = results[members[0].predictor].counts[task]["entities"]
            paired += compare(split, task, draws, clusters, BASELINE)
            pairs += compare_all_pairs(split, task, draws, clusters)
    everything = [member for members in loaded.values() for member in members]
    tasks = _tasks_of(table, everything)
    points = pd.concat([_points(member) for member in everything], ignore_index=True)
    return Evaluation(
        dataset=table.dataset,
        metrics=pd.DataFrame(metrics, columns=METRIC_COLUMNS),
        slices=pd.concat(sliced, ignore_index=True),
        paired=pd.DataFrame(paired, columns=PAIRED_COLUMNS),
        pairs=pd.DataFrame(pairs, columns=PAIR_COLUMNS),
        all_rows=pd.concat(all_rows, ignore_index=True),
        noise=estimate_noise_floor(table, tasks),
        history=_history(everything),
        points=points,
        importance=read_importances(runs),
        attention=read_attentions(runs),
        published=tabulate_published_values(published, set(tasks.dropna().astype(str))),
        in_domain=pd.concat(
            [errors_by_in_domain_score(member.split, member.predictor, member.frame) for member in everything],
            ignore_index=True,
        ),
        levels=pd.concat(
            [coverage_by_level(member.split, member.predictor, member.frame) for member in everything],
            ignore_index=True,
        ),
        pit=pd.concat(
            [pit_histogram(member.split, member.predictor, member.frame) for member in everything], ignore_index=True
        ),
        calibration=pd.concat(checks, ignore_index=True),
        described=summarize_described(described, level),
        error_sources=tabulate_error_sources(points, table, error_sources),
        kinds=tabulate_kind_errors(points, table, resamples, seed),
        tables={name: tabulate(points, table) for name, tabulate in tables.items()},
        series=tabulate_series(points, table, series),
        resamples=resamples,
        seed=seed,
        level=level,
    )


def _months(table: Table) -> pd.Series:
    """Return the TIME column by the key of the rows, NaT where the dataset has no dates."""
    times = table.select(tag=Tag.TIME, kind=Kind.DATE)
    values = table.frame[times[0]] if times else pd.Series(pd.NaT, index=table.frame.index)
    return values.set_axis(pd.Index(table.frame[table.column_of(Tag.ROW)]))


def _check_split_version(split: str, folder: Path) -> None:
    """Raise a UserError where the record of a run names another version of its split than today's."""
    record = Path(folder) / "record.json"
    if record.is_file():
        check_version(split, int(read_object(record).get(VERSION, 1)), record)


def _check_same_rows(split: str, members: Sequence[Predictions]) -> None:
    """Raise a UserError when predictors of one split were tested on different rows, whose errors cannot be compared."""
    first = members[0]
    rows: set[tuple[object, ...]] = set()
    for member in members[1:]:
        if member.frame[_TESTED].equals(first.frame[_TESTED]):
            continue  # in the same order, as predictors with as many seeds are
        rows, tested = rows or _tested(first), _tested(member)
        if tested != rows:
            raise UserError(
                f"all predictors of the split {split!r} must be tested on the same rows",
                f"{member.predictor} has {len(tested)} and {first.predictor} {len(rows)}, or other ones",
                "train both again",
            )


def _tested(member: Predictions) -> set[tuple[object, ...]]:
    # as objects: the texts of a column in Arrow are made one by one
    return set(zip(*[member.frame[name].to_numpy(dtype=object) for name in _TESTED], strict=True))


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


def _metric_rows(split: str, predictor: str, result: Result) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for task, by_metric in result.tasks.items():
        counts = result.counts[task]
        for metric, metric_draws in by_metric.items():
            low, high = percentile_interval(metric_draws.draws, counts["entities"])
            row = {"split": split, "predictor": predictor, "task": task, "metric": metric, "value": metric_draws.value}
            rows.append({**row, "low": low, "high": high, "seed_sd": metric_draws.seed_sd, **counts})
    return rows


def _slice_rows(
    member: Predictions,
    slices: pd.DataFrame,
    entities: pd.Index,
    weights: np.ndarray,
    level: float,
    *,
    are_shares: bool = False,
) -> pd.DataFrame:
    """Return the errors by the values of every slice, tasks and seeds pooled.

    The interval is that of the mean error: of shares the MAE, else the MAPE.
    """
    frame = member.frame
    points = (100 * (frame["predicted"] - frame["measured"]).abs()).to_numpy()
    errors = points / frame["measured"].to_numpy()
    leading = points if are_shares else errors
    inside, widths, scores = is_covered(frame), interval_widths(frame), interval_scores(frame, level)
    clusters = entities.get_indexer(pd.Index(frame["entity"]))
    measured = frame.groupby(["row", "target"], sort=False).ngroup().to_numpy()
    weights = weights.astype(float)  # once: every product with whole numbers would convert them again
    rows = []
    for name in slices.columns:
        for value, index in slices.groupby(name, sort=True).indices.items():
            count = np.bincount(clusters[index], minlength=len(entities))
            total = np.bincount(clusters[index], weights=leading[index], minlength=len(entities))
            n_entities = int((count > 0).sum())
            with np.errstate(invalid="ignore"):
                low, high = percentile_interval((weights @ total) / (weights @ count), n_entities)
            mae = points[index].mean() if are_shares else np.nan
            row = (member.split, member.predictor, name, value, errors[index].mean(), low, high)
            sure = 100 * inside[index].mean(), np.median(widths[index]), scores[index].mean()
            rows.append((*row, np.median(errors[index]), mae, *sure, len(np.unique(measured[index])), n_entities))
    return pd.DataFrame(rows, columns=SLICE_COLUMNS)


def _tasks_of(table: Table, members: Sequence[Predictions]) -> pd.Series:
    """Return the task of every row of the table: the TASK column, or the only task when none is declared."""
    names = table.select(tag=Tag.TASK)
    if names:
        return table.frame[names[0]]
    return pd.Series(str(members[0].frame["task"].iloc[0]), index=table.frame.index)


def _history(members: Sequence[Predictions]) -> pd.DataFrame:
    frames = [
        member.history.assign(split=member.split, predictor=member.predictor)
        for member in members
        if not member.history.empty
    ]
    columns = ["split", "predictor", *HISTORY_COLUMNS]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)


def _points(member: Predictions) -> pd.DataFrame:
    """Return one point per test row and target, the geometric mean over seeds."""
    frame = member.frame.assign(predicted=np.log(member.frame["predicted"]))
    by_row = frame.groupby(["task", "target", "row"], sort=True)
    points = by_row[["measured", "predicted", HALF_WIDTH, IN_DOMAIN_SCORE]].mean()
    points["predicted"] = np.exp(points["predicted"])
    points = points.astype("float32").assign(split=member.split, predictor=member.predictor)
    points[DISSIMILAR_GROUP] = by_row[DISSIMILAR_GROUP].first()
    return points.reset_index()[POINT_COLUMNS]
