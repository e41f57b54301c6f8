"""Paired differences of metrics on the same resamples of the same test rows, with verdicts."""

from __future__ import annotations

import filecmp
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import draw_weights, percentile_interval
from perfcast.evaluation.evaluate_runs import Result, compute_metrics
from perfcast.evaluation.predictor_comparison import step_down_test
from perfcast.evaluation.results_diff.sides import Side
from perfcast.evaluation.run_predictions import read_backtests, read_predictions, with_intervals
from perfcast.schema.table_files import read_parquet
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError
from perfcast.utils.progress import Progress, ignore_progress

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "no real change", "cannot tell"
MOVED, NARROWER, WIDER = "moved", "narrower", "wider"
"""Real, but neither better nor worse in itself: a coverage about as far from its level as before, a width."""
REAL = (WORSE, BETTER, MOVED, WIDER, NARROWER)
_LEVEL_OF_TEST = 0.05


def assign_verdicts(
    metric: str,
    values: tuple[np.ndarray, np.ndarray],
    draws: tuple[np.ndarray, np.ndarray],
    levels: tuple[float, float],
    clusters: int,
) -> list[dict[str, Any]]:
    """Return one row per predictor: before, after, difference, low, high, p, verdict.

    A difference is real when its interval excludes zero and its p-value, adjusted for all predictors given, is below
    0.05. Errors are better when smaller, a coverage when nearer to its level. A resample without a value on either
    side is left out.
    Shapes: values (predictors,), draws (predictors, resamples) of either side. Units: % and percentage points.
    """
    differences, moves = values[1] - values[0], draws[1] - draws[0]
    real, p = _real(differences, moves, clusters)
    if metric == "coverage":
        sides = list(zip(values, draws, levels, strict=True))
        gaps = [np.abs(value - level) for value, _, level in sides]
        gap_draws = [np.abs(draw - level) for _, draw, level in sides]
        nearer, _ = _real(gaps[1] - gaps[0], gap_draws[1] - gap_draws[0], clusters)
        gains = gaps[1] - gaps[0]
    rows: list[dict[str, Any]] = []
    for index, difference in enumerate(differences):
        low, high = percentile_interval(moves[index], clusters)
        if not np.isfinite(low):
            verdict = UNKNOWN
        elif not real[index]:
            verdict = SAME
        elif metric == "width":
            verdict = WIDER if difference > 0 else NARROWER
        elif metric == "coverage":
            verdict = MOVED if not nearer[index] else WORSE if gains[index] > 0 else BETTER
        else:
            verdict = WORSE if difference > 0 else BETTER
        numbers = (values[0][index], values[1][index], difference, low, high, p[index])
        names = ("before", "after", "difference", "low", "high", "p")
        rows.append({**dict(zip(names, map(float, numbers), strict=True)), "verdict": verdict})
    return rows


def _real(differences: np.ndarray, draws: np.ndarray, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which differences are real, and their adjusted p-values."""
    bounds = np.array([percentile_interval(row, clusters) for row in draws])
    has_interval = np.isfinite(bounds).all(axis=1)
    p = step_down_test(np.where(has_interval, differences, np.nan), draws, _LEVEL_OF_TEST).adjusted
    with np.errstate(invalid="ignore"):
        excludes = (bounds[:, 0] > 0) | (bounds[:, 1] < 0)
        return has_interval & excludes & (p <= _LEVEL_OF_TEST), p


METRICS = ("mape", "medape", "p90", "coverage", "width", "interval_score")
CHANGE_COLUMNS = [
    *("dataset", "split", "predictor", "task", "metric", "before", "after"),
    *("difference", "low", "high", "p", "verdict"),
]
_KEY = ["task", "target", "row"]


@dataclass(frozen=True)
class RowsCompared:
    """Test rows of one split: those both sides have, those one side alone has, and shared ones with another score."""

    dataset: str
    split: str
    shared: int
    only_before: int
    only_after: int
    remeasured: int
    entities: int


@dataclass(frozen=True)
class MetricChanges:
    """Every compared metric, the rows it was compared on, and what could not be compared, in words.

    Shapes: `frame` has one row per (dataset, split, predictor, task or average, metric), columns CHANGE_COLUMNS.
    Units: metrics, differences and intervals in % and percentage points.
    """

    frame: pd.DataFrame
    rows: list[RowsCompared]
    left_out: list[str]


@dataclass(frozen=True)
class Only:
    """Names to compare; empty: everything that both sides have."""

    datasets: Sequence[str] = ()
    splits: Sequence[str] = ()
    predictors: Sequence[str] = ()


def metric_changes(
    a: Side, b: Side, *, only: Only | None = None, resamples: int | None = None, progress: Progress = ignore_progress
) -> MetricChanges:
    """Compare the shared datasets, splits and predictors.

    Differences are `b` minus `a`, with 95 % bootstrap intervals clustered by entity as `evaluate` draws them
    (`resamples` and seed are those of `b`), on the test rows that both sides have; seeds are averaged. Prediction
    intervals have the level that their side was evaluated with.
    Raises: UserError when nothing can be compared.
    """
    only = only or Only()
    summaries = a.summaries(), b.summaries()
    frames: list[pd.DataFrame] = []
    rows: list[RowsCompared] = []
    left_out: list[str] = []
    total = sum(len(summary["metrics"]) for summary in summaries[1].values())
    for dataset in _shared("dataset", *summaries, where="", wanted=only.datasets, messages=left_out):
        pair = [summary[dataset] for summary in summaries]
        metrics = [side["metrics"] for side in pair]
        for split in _shared("split", *metrics, where=f"{dataset}/", wanted=only.splits, messages=left_out):
            where = f"{dataset}/{split}/"
            progress(f"{dataset}/{split}", len(rows), total)
            both = [side[split] for side in metrics]
            names = _shared("predictor", *both, where=where, wanted=only.predictors, messages=left_out)
            names = [name for name in names if _has_predictions((a, b), f"{where}{name}", left_out)]
            if not names:
                continue
            levels = [float(side.get("level", LEVEL)) for side in pair]
            before = {name: _read_intervals(a, dataset, split, name, levels[0]) for name in names}
            after = {
                name: before[name]
                if levels[0] == levels[1] and _are_equal_runs(a, b, dataset, split, name)
                else _read_intervals(b, dataset, split, name, levels[1])
                for name in names
            }
            count, before, after = _same_rows(dataset, split, before, after)
            rows.append(count)
            if count.shared:
                drawn = resamples or int(pair[1]["resamples"])
                weights = draw_weights(count.entities, drawn, int(pair[1]["seed"]))
                frames.append(_compare(count, before, after, weights, (100 * levels[0], 100 * levels[1])))
    if not frames:
        raise _nothing(a, b, rows, left_out)
    return MetricChanges(pd.concat(frames, ignore_index=True)[CHANGE_COLUMNS], rows, left_out)


def _shared(
    what: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    where: str,
    wanted: Sequence[str],
    messages: list[str],
) -> list[str]:
    """Return the wanted names that both sides have, in the order of `after`; add a message for each other name."""
    for name in sorted({*before} ^ {*after}):
        if not wanted or name in wanted:
            messages.append(f"{what} {where}{name}: only {'before' if name in before else 'after'}")
    return [name for name in after if name in before and (not wanted or name in wanted)]


def _has_predictions(sides: tuple[Side, Side], run: str, messages: list[str]) -> bool:
    absent = [side for side in sides if not (side.folder / "runs" / run / "predictions.parquet").is_file()]
    messages += [f"predictor {run}: {side.label} has no runs/{run}/predictions.parquet" for side in absent]
    return not absent


def _files_of(side: Side, dataset: str, split: str, predictor: str) -> tuple[Path, Path]:
    """Return the folder of a run and the file of its distances."""
    return side.folder / "runs" / dataset / split / predictor, side.folder / "in_domain" / dataset / f"{split}.parquet"


def _are_equal_runs(a: Side, b: Side, dataset: str, split: str, predictor: str) -> bool:
    """Return whether the files that predictions and intervals are read from have the same bytes."""
    (run, distances), (other_run, other_distances) = (_files_of(side, dataset, split, predictor) for side in (a, b))
    pairs = [(distances, other_distances)]
    for folder, other in ((run, other_run), (other_run, run)):
        pairs += [(path, other / path.name) for path in folder.glob("*.parquet")]
    return all(
        first.is_file() == second.is_file() and (not first.is_file() or filecmp.cmp(first, second, shallow=False))
        for first, second in pairs
    )


def _read_intervals(side: Side, dataset: str, split: str, predictor: str, level: float) -> pd.DataFrame:
    """Return the test predictions of one run with their intervals, one row per seed, task, target and row."""
    folder, distances = _files_of(side, dataset, split, predictor)
    frame_of_distances = read_parquet(distances) if distances.is_file() else None
    frame = read_predictions(split, predictor, folder).frame
    return with_intervals(frame, read_backtests(folder), frame_of_distances, level)


def _same_rows(
    dataset: str, split: str, before: dict[str, pd.DataFrame], after: dict[str, pd.DataFrame]
) -> tuple[RowsCompared, dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """Keep the rows that all predictors of both sides were tested on, with the entities of `after`."""
    keys = [
        [frame.drop_duplicates(_KEY).set_index(_KEY)[["measured", "entity"]] for frame in side.values()]
        for side in (before, after)
    ]
    shared = keys[1][0].index
    for frame in [*keys[0], *keys[1]]:
        shared = shared.intersection(frame.index)
    old, new = keys[0][0].loc[shared], keys[1][0].loc[shared]
    entities = new["entity"]
    shared_frames = [
        {
            name: frame.set_index(_KEY).loc[lambda rows: rows.index.isin(shared)].assign(entity=entities).reset_index()
            for name, frame in side.items()
        }
        for side in (before, after)
    ]
    count = RowsCompared(
        dataset=dataset,
        split=split,
        shared=len(shared),
        only_before=len(keys[0][0]) - len(shared),
        only_after=len(keys[1][0]) - len(shared),
        remeasured=int((~np.isclose(old["measured"], new["measured"], rtol=1e-9, atol=0)).sum()),
        entities=int(entities.nunique()),
    )
    return count, shared_frames[0], shared_frames[1]


def _compare(
    count: RowsCompared,
    before: dict[str, pd.DataFrame],
    after: dict[str, pd.DataFrame],
    weights: np.ndarray,
    levels: tuple[float, float],
) -> pd.DataFrame:
    """Return the changes of one split: one row per predictor, task and metric."""
    names = list(after)
    entities = pd.Index(sorted(set(after[names[0]]["entity"])))
    results: list[tuple[Result, Result]] = []
    for name in names:
        old = compute_metrics(before[name], entities, weights, levels[0] / 100)
        # an unchanged run is not drawn twice, and its differences are exactly zero
        same = levels[0] == levels[1] and before[name].equals(after[name])
        new = old if same else compute_metrics(after[name], entities, weights, levels[1] / 100)
        results.append((old, new))
    rows = []
    for task in results[0][1].tasks:
        clusters = results[0][1].counts[task]["entities"]
        for metric in METRICS:
            values_of = [[side.tasks[task][metric] for side in pair] for pair in results]
            values = tuple(np.array([pair[side].value for pair in values_of]) for side in (0, 1))
            draws = tuple(np.array([pair[side].draws for pair in values_of]) for side in (0, 1))
            rows_of_metric = assign_verdicts(metric, (values[0], values[1]), (draws[0], draws[1]), levels, clusters)
            for name, row in zip(names, rows_of_metric, strict=True):
                if not np.isnan([row["before"], row["after"]]).all():
                    rows.append({"predictor": name, "task": task, "metric": metric, **row})
    return pd.DataFrame(rows).assign(dataset=count.dataset, split=count.split)


def _nothing(a: Side, b: Side, rows: list[RowsCompared], messages: list[str]) -> UserError:
    """Return the error for sides that share no name, no prediction, or no test row."""
    requirement = f"{a.label} and {b.label} must share a dataset, a split and a predictor with test rows"
    if rows:
        return UserError(requirement, "none of their test rows have the same key", "compare results of the same data")
    reasons = "; ".join(messages[:3]) + (f"; and {len(messages) - 3} more" if len(messages) > 3 else "")
    return UserError(requirement, reasons or "no requested name is in both", "see evaluation/ in both folders")
