"""One training job: a predictor on every fold and seed of a split, and the final model on all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.predictors.base import Predictor
from perfcast.schema import Role, Table, Tag

_MIN_PEERS = 5
"""Fewest measured peers for which a training label may be called an outlier."""


def predictor_class(module: ModuleType) -> type[Predictor]:
    """Return the predictor of a plug-in module: its only public Predictor subclass.

    Raises: TypeError when there is none, or more than one.
    """
    found = [
        value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Predictor)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if len(found) != 1:
        raise TypeError(f"{module.__name__} must define exactly one public predictor, found {len(found)}")
    return found[0]


def make_predictor(module: str, arguments: Mapping[str, Any], seed: int | None) -> Predictor:
    """Construct a predictor by module name; `seed` becomes its `random_state` when it is stochastic."""
    seeded = dict(arguments) if seed is None else {**arguments, "random_state": seed}
    return predictor_class(plugins.load("predictors", module))(**seeded)


@dataclass(frozen=True)
class Fitted:
    """One fitted predictor with what it forecast for the test and the inner validation rows."""

    fold: int
    seed: int
    predictor: Predictor
    test: pd.DataFrame
    inner_error: float


def label_outliers(table: Table, rows: np.ndarray, threshold: float | None) -> np.ndarray:
    """Mark training rows whose score is implausible beside its peers: same TASK and IDENTITY, at least five of them.

    Shapes: `rows` and the answer are boolean over the table's rows; marked rows are a subset of `rows`.
    `threshold` is the largest absolute natural logarithm of score over the peers' median; None marks nothing. Only the
    given rows are looked at, so no test score takes part. Source: counted on the published results, where deviations
    beyond 0.3 are mistakes of the entry or crippled configurations, all on the low side.
    """
    marked = np.zeros(len(table.frame), dtype=bool)
    if threshold is None or not rows.any():
        return marked
    peers = table.select(tag=Tag.TASK) + table.select(tag=Tag.IDENTITY)
    frame = table.frame.loc[rows]
    for target in table.select(role=Role.TARGET):
        logs = np.log(frame[target])
        groups = logs.groupby([frame[name] for name in peers], dropna=False)
        far = (logs - groups.transform("median")).abs() > threshold
        marked[np.flatnonzero(rows)] |= (far & (groups.transform("count") >= _MIN_PEERS)).to_numpy()
    return marked


def run_folds(
    table: Table,
    folds: pd.DataFrame,
    make: Callable[[int], Predictor],
    seeds: Sequence[int],
    label_outlier: float | None,
) -> Iterator[Fitted]:
    """Fit on the training rows of every fold and seed, forecast the test rows, one at a time.

    Shapes: `folds` has one string column per fold, values train | valid | test | unused, in the table's row order.
    """
    frame = table.frame
    targets = table.select(role=Role.TARGET)
    inputs = [column.name for column in table.columns if column.role is not Role.TARGET]
    measured = frame[targets].notna().any(axis=1).to_numpy()
    for fold, name in enumerate(folds.columns):
        part = folds[name].to_numpy()
        training = np.isin(part, ["train", "valid"]) & measured
        training &= ~label_outliers(table, training, label_outlier)
        testing = part == "test"
        valid = part[training] == "valid"
        for seed in seeds:
            predictor = make(seed)
            predictor.fit(frame.loc[training, inputs], frame.loc[training, targets], columns=table.columns, valid=valid)
            forecast = predictor.predict(frame.loc[testing, inputs])
            yield Fitted(
                fold, seed, predictor, as_predictions(table, testing, forecast, fold, seed), inner_error(predictor)
            )


def inner_error(predictor: Predictor) -> float:
    """Return the error the predictor saw on its own inner validation rows, NaN when it made no choice there."""
    return float(getattr(predictor, "valid_mape_", float("nan")))


def as_predictions(table: Table, rows: np.ndarray, forecast: pd.DataFrame, fold: int, seed: int) -> pd.DataFrame:
    """Return long predictions: one line per row and target that was measured."""
    frame = table.frame.loc[rows]
    parts = []
    for target in forecast.columns:
        parts.append(
            pd.DataFrame(
                {
                    "row": frame[table.one(Tag.ROW)],
                    "task": frame[table.one(Tag.TASK)],
                    "entity": frame[table.one(Tag.ENTITY)],
                    "fold": fold,
                    "seed": seed,
                    "target": target,
                    "measured": frame[target],
                    "predicted": forecast[target],
                }
            )
        )
    long = pd.concat(parts, ignore_index=True)
    return long[long["measured"].notna()].reset_index(drop=True)
