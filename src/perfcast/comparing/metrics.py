"""Whether the change of each metric is real: paired differences on the same resamples of the same test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast.comparing.sides import Side
from perfcast.comparing.verdicts import judge
from perfcast.errors import UserError
from perfcast.evaluation.evaluate import Result, measure
from perfcast.evaluation.intervals import read_rehearsals, with_intervals
from perfcast.evaluation.metrics import draw_weights
from perfcast.evaluation.predictions import read_predictions
from perfcast.table_files import read_parquet
from perfcast.uncertainty.conformal import LEVEL

METRICS = ("mape", "medape", "p90", "coverage", "width")
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

    Shapes: `frame` has one row per (data set, split, predictor, task or average, metric), columns CHANGE_COLUMNS.
    Units: metrics, differences and intervals in % and percentage points.
    """

    frame: pd.DataFrame
    rows: list[RowsCompared]
    left_out: list[str]


@dataclass(frozen=True)
class Only:
    """What to compare, by name; empty: everything that both sides have."""

    datasets: Sequence[str] = ()
    splits: Sequence[str] = ()
    predictors: Sequence[str] = ()


def metric_changes(a: Side, b: Side, *, only: Only | None = None, resamples: int | None = None) -> MetricChanges:
    """Compare the shared data sets, splits and predictors.

    Differences are `b` minus `a`, with 95 % bootstrap intervals clustered by entity as `evaluate` draws them
    (`resamples` and seed are those of `b`), on the test rows that both sides have; seeds are averaged. The interval of
    a forecast has the level that its side was evaluated with.
    Raises: UserError when nothing can be compared.
    """
    only = only or Only()
    summaries = a.summaries(), b.summaries()
    frames: list[pd.DataFrame] = []
    rows: list[RowsCompared] = []
    left_out: list[str] = []
    for dataset in _shared("data set", *summaries, where="", wanted=only.datasets, told=left_out):
        told = [summary[dataset] for summary in summaries]
        known = [one["metrics"] for one in told]
        for split in _shared("split", *known, where=f"{dataset}/", wanted=only.splits, told=left_out):
            where = f"{dataset}/{split}/"
            both = [one[split] for one in known]
            names = _shared("predictor", *both, where=where, wanted=only.predictors, told=left_out)
            names = [name for name in names if _has_predictions((a, b), f"{where}{name}", left_out)]
            if not names:
                continue
            levels = [float(one.get("level", LEVEL)) for one in told]
            sides = [
                {name: _forecasts(side, dataset, split, name, level) for name in names}
                for side, level in zip((a, b), levels, strict=True)
            ]
            count, before, after = _same_rows(dataset, split, *sides)
            rows.append(count)
            if count.shared:
                drawn = resamples or int(told[1]["resamples"])
                weights = draw_weights(count.entities, drawn, int(told[1]["seed"]))
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
    told: list[str],
) -> list[str]:
    """Return the wanted names that both sides have, in the order of `after`; tell of the others."""
    for name in sorted({*before} ^ {*after}):
        if not wanted or name in wanted:
            told.append(f"{what} {where}{name}: only {'before' if name in before else 'after'}")
    return [name for name in after if name in before and (not wanted or name in wanted)]


def _has_predictions(sides: tuple[Side, Side], run: str, told: list[str]) -> bool:
    absent = [side for side in sides if not (side.folder / "runs" / run / "predictions.parquet").is_file()]
    told += [f"predictor {run}: {side.label} has no runs/{run}/predictions.parquet" for side in absent]
    return not absent


def _forecasts(side: Side, dataset: str, split: str, predictor: str, level: float) -> pd.DataFrame:
    """Return the test forecasts of one run with their intervals, one row per seed, task, target and row."""
    folder = side.folder / "runs" / dataset / split / predictor
    distances = side.folder / "support" / dataset / f"{split}.parquet"
    far = read_parquet(distances) if distances.is_file() else None
    frame = read_predictions(split, predictor, folder).frame
    return with_intervals(frame, read_rehearsals(folder), far, level)


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
    kept = [
        {
            name: frame.set_index(_KEY).loc[lambda one: one.index.isin(shared)].assign(entity=entities).reset_index()
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
    return count, kept[0], kept[1]


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
        old = measure(before[name], entities, weights)
        # a run that nothing changed need not be drawn twice, and its differences are exactly zero
        new = old if before[name].equals(after[name]) else measure(after[name], entities, weights)
        results.append((old, new))
    rows = []
    for task in results[0][1].tasks:
        clusters = results[0][1].counts[task]["entities"]
        for metric in METRICS:
            found = [[side.tasks[task][metric] for side in pair] for pair in results]
            values = tuple(np.array([pair[side].value for pair in found]) for side in (0, 1))
            draws = tuple(np.array([pair[side].draws for pair in found]) for side in (0, 1))
            judged = judge(metric, (values[0], values[1]), (draws[0], draws[1]), levels, clusters)
            for name, row in zip(names, judged, strict=True):
                if not np.isnan([row["before"], row["after"]]).all():
                    rows.append({"predictor": name, "task": task, "metric": metric, **row})
    return pd.DataFrame(rows).assign(dataset=count.dataset, split=count.split)


def _nothing(a: Side, b: Side, rows: list[RowsCompared], told: list[str]) -> UserError:
    """Say in one line why nothing can be compared: the sides share no name, no prediction, or no test row."""
    requirement = f"{a.label} and {b.label} must share a data set, a split and a predictor with test rows"
    if rows:
        return UserError(requirement, "none of their test rows have the same key", "compare results of the same data")
    few = "; ".join(told[:3]) + (f"; and {len(told) - 3} more" if len(told) > 3 else "")
    return UserError(requirement, few or "nothing of the names asked for is in both", "see evaluation/ in both folders")
