"""Distances of test and backtest rows from the rows fitted on, and the uncertainty model fitted to backtests.

Apart from `fitting.py`, which training imports: an edit here fits intervals again and trains nothing again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from perfcast.experiment.fitting import (
    Backtest,
    FoldRows,
    evaluated_rows,
    last_year,
    plan_backtests,
    run_backtests,
    training_rows,
)
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import TASK_KIND, Kind, Role, Table, Tag, select
from perfcast.uncertainty.conformal import DEVIATION, HALF_NORMAL, ConformalCalibration, UncertaintyModel
from perfcast.uncertainty.in_domain import InDomainModel
from perfcast.uncertainty.levels import ErrorLevels, KnownErrors, outputs_of
from perfcast.uncertainty.rolling import count_trained, error_rows

_ENTITY_SHARE = 6
"""One independent unit in so many is drawn for a backtest where there is no last year."""

_MIN_TESTED = 300
"""Rows of a drawn backtest below which the other units are held out in turn: their quantiles differ by chance."""

_MIN_SHARE = 0.05
"""Least share of the rows of an entity that is held out alone."""


def fold_distances(
    table: Table, folds: pd.DataFrame, label_outlier: float | None, limit: int, shift: Any = None
) -> pd.DataFrame:
    """Return the distances of the rows of every backtest and of the test part from the rows fitted on.

    Shapes: one row per fold, backtest (`TEST`: the test part) and predicted row, with the columns fold, backtest, row,
    those of `InDomainModel`, the shift of the row by the class `shift` (see `Domain`), and the kind of result and the
    block of the row, "" without.
    """
    frames = []
    block = table.frame[(table.select(tag=Tag.BLOCK) or [table.column_of(Tag.ROW)])[0]].astype(str).to_numpy(object)
    for fold, name in enumerate(folds.columns):
        rows = FoldRows.plan(table, folds[name].to_numpy(), label_outlier, limit)
        frames += [
            _distances(table, backtest).assign(
                fold=fold,
                shift=_shifts(table, backtest, shift),
                kind=result_kinds(table)[backtest.testing],
                block=block[backtest.testing],
            )
            for backtest in (rows.final, *rows.backtests)
        ]
    return pd.concat(frames, ignore_index=True)


def result_kinds(table: Table) -> np.ndarray:
    """Return the kind of result of every row, "" where the dataset tells none, (rows of the table,) object."""
    if TASK_KIND not in table.frame:
        return np.full(len(table.frame), "", dtype=object)
    return np.asarray(table.frame[TASK_KIND].astype(str), dtype=object)


def plan_final_backtests(table: Table, seed: int, label_outlier: float | None, limit: int) -> list[Backtest]:
    """Return the backtests of a predictor that is fitted on every row, see `fit_uncertainty`.

    Besides `limit`, there is one for every entity where they are too few to be drawn. Where the drawn units have few
    rows, each other unit is in a backtest too.
    Source: cross-conformal prediction (Vovk, 2015, Ann. Math. Artif. Intell. 74).
    """
    subset = np.full(len(table.frame), "train", dtype=object)
    others = list[np.ndarray]()
    known = training_rows(table, subset, label_outlier)
    validation = last_year(table, known)
    if validation is None or table.frame.loc[known, table.select(tag=Tag.TIME)[0]][~validation].isna().all():
        units = independent_units(table)
        distinct = np.sort(units[known].unique())
        rng = np.random.default_rng(seed)
        drawn = rng.choice(distinct, len(distinct) // _ENTITY_SHARE, replace=False)
        validation = units[known].isin(drawn).to_numpy()
        if 0 < validation.sum() < _MIN_TESTED:
            parts = np.array_split(rng.permutation(np.setdiff1d(distinct, drawn)), _ENTITY_SHARE - 1)
            others = [units.isin(part).to_numpy() for part in parts]
    subset[np.flatnonzero(known)[validation]] = "validation"
    # a late label outlier would be a training row among those of the last year
    subset[~known] = "unused"
    backtests = plan_backtests(table, subset, label_outlier, limit)
    return [*backtests, *(_hold_out_each(table, Tag.ENTITY, known, limit) or _hold_out(table, others, known, limit))]


def _hold_out_each(table: Table, tag: Tag, known: np.ndarray, first: int) -> list[Backtest]:
    """Return a backtest of every value of a column, numbered from `first`; none of a table with many entities."""
    entities = table.frame[table.column_of(Tag.ENTITY)]
    if not table.select(tag=tag) or entities.nunique() >= _ENTITY_SHARE:
        return []
    values = table.frame[table.select(tag=tag)[0]].astype(str).to_numpy()
    shares = pd.Series(values[known]).value_counts(normalize=True).sort_index()
    held_out = [values == value for value in shares.index[shares >= _MIN_SHARE] if len(shares) > 1]
    return _hold_out(table, held_out, known, first)


def _hold_out(table: Table, held_out: list[np.ndarray], known: np.ndarray, first: int) -> list[Backtest]:
    tested = known & evaluated_rows(table)
    backtests = [Backtest(first + number, known & ~rows, tested & rows) for number, rows in enumerate(held_out)]
    return [backtest for backtest in backtests if backtest.testing.any()]


def independent_units(table: Table) -> pd.Series:
    """Return labels of rows that err alike: the entity, or a machine and its set-up where few entities are there.

    A set-up is what no size of the problem changes: the identity, the texts and the number of workers. Where few of
    these are there too, as of model sizes in a ladder, a block is a unit.
    """
    entities = table.frame[table.column_of(Tag.ENTITY)].astype(str)
    if entities.nunique() >= _ENTITY_SHARE:
        return entities
    texts = [column.name for column in select(table.columns, role=Role.FEATURE) if column.kind is Kind.CATEGORICAL]
    units = entities
    for name in dict.fromkeys((*table.select(tag=Tag.IDENTITY), *table.select(tag=Tag.PARALLEL), *texts)):
        units = units + "\x1f" + table.frame[name].astype(str)
    blocks = table.select(tag=Tag.BLOCK)
    return units if units.nunique() >= _ENTITY_SHARE or not blocks else table.frame[blocks[0]].astype(str)


def fit_uncertainty(
    table: Table, make: Callable[[int], Predictor], seed: int, label_outlier: float | None, limit: int
) -> UncertaintyModel | None:
    """Fit the uncertainty model of a predictor that is fitted on every row; None with too few rows for a backtest.

    It backtests on the last year and, with a larger limit, on earlier ones. A dataset without dates, or without a dated
    row before its last year, is backtested on a random sixth of its independent units, or on every sixth of few rows,
    and one of few entities on each of these. Each set-up is held out for the levels of errors alone: a user's own
    software errs as one that nobody has measured, while the intervals are those of known software.
    """
    known = training_rows(table, np.full(len(table.frame), "train", dtype=object), label_outlier)
    backtests = plan_final_backtests(table, seed, label_outlier, limit)
    setups = _hold_out_each(table, Tag.SETUP, known, limit + _ENTITY_SHARE) if backtests else []
    predictions = run_backtests(table, [*backtests, *setups], make, seed, 0)
    if predictions.empty:
        return None
    distances = pd.concat([_distances(table, backtest) for backtest in (*backtests, *setups)])
    lines = predictions.merge(distances, on=["backtest", "row"])
    in_domain = fit_in_domain(table, known)
    residuals = np.log(lines["predicted"].to_numpy(dtype=float) / lines["measured"].to_numpy(dtype=float))
    outputs = outputs_of(lines["task"], lines["target"])
    numbers = lines["backtest"].to_numpy()
    units = independent_units(table).set_axis(table.frame[table.column_of(Tag.ROW)].to_numpy())
    kinds = pd.Series(result_kinds(table), units.index)
    known_setup = numbers < limit + _ENTITY_SHARE
    calibration = ConformalCalibration().fit(
        residuals[known_setup],
        outputs[known_setup],
        numbers[known_setup],
        lines.loc[known_setup, in_domain.names],
        entities=units.loc[lines["row"]].to_numpy()[known_setup],
        kinds=kinds.loc[lines["row"]].to_numpy()[known_setup],
    )
    if DEVIATION in lines:
        calibration.quantiles = {"": HALF_NORMAL}
    # entities, and set-ups, that are held out one by one are one backtest: its pairs tell what each has of its own
    joined = np.array([_join(number, limit) for number in numbers.tolist()])
    rows = error_rows(lines, table)
    fitting: dict[int, np.ndarray] = {}
    for each in (*backtests, *setups):
        number = _join(each.number, limit)
        fitting[number] = fitting.get(number, known) & each.fitting
    trained = {number: count_trained(table, each) for number, each in fitting.items()}
    levels = ErrorLevels().fit(-residuals, rows, joined, trained)
    nothing = rows.take(np.zeros(0, dtype=int))
    known_errors = KnownErrors(levels, np.zeros(0), nothing, trained=count_trained(table, known))
    return UncertaintyModel(in_domain, calibration, known_errors)


def _join(number: int, limit: int) -> int:
    """Return the number of a backtest; entities, and set-ups, that are held out one by one have one number."""
    return number if number < limit else limit + (number - limit) // _ENTITY_SHARE


def fit_in_domain(table: Table, rows: np.ndarray) -> InDomainModel:
    """Return the distances from some rows of a table."""
    return InDomainModel().fit(table.frame.loc[rows], table.columns, _dates(table, rows))


def _dates(table: Table, rows: np.ndarray) -> pd.Series | None:
    times = table.select(tag=Tag.TIME)
    return table.frame.loc[rows, times[0]] if times else None


def _distances(table: Table, backtest: Backtest) -> pd.DataFrame:
    model = fit_in_domain(table, backtest.fitting)
    distances = model.distances(table.frame.loc[backtest.testing], _dates(table, backtest.testing))
    distances.insert(0, "row", table.frame.loc[backtest.testing, table.column_of(Tag.ROW)])
    return distances.assign(backtest=backtest.number)


def _shifts(table: Table, backtest: Backtest, shift: Any) -> np.ndarray:
    fitting = table.frame.loc[backtest.fitting]
    testing = table.frame.loc[backtest.testing]
    if shift is not None:
        return np.asarray(shift.fit(fitting, table.columns).of(testing))
    entity = table.column_of(Tag.ENTITY)
    return np.where(testing[entity].astype(str).isin(fitting[entity].astype(str)), "seen entity", "unseen entity")
