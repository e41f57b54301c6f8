"""Rehearsals of a split's question inside the training part of a fold: forecasts that training itself can judge.

And how far every machine asked about, in rehearsals and in the test part, is from the rows fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.fitting import as_predictions, fit
from perfcast.intervals import Calibrated, Calibration, Support, questions_of
from perfcast.parts import judged, judged_rows, last_year, training_rows
from perfcast.predictors._rehearsals import rehearsals
from perfcast.predictors.base import Predictor
from perfcast.schema import Table, Tag

TEST = -1
"""Stands for the test part where rehearsals have their number."""

_DRAWN = 6
"""One entity in so many is drawn where there is no last year to rehearse."""


@dataclass(frozen=True)
class Rehearsal:
    """Rows to fit on and rows to forecast, all of them inside training. Shapes: (rows of the table,) bool."""

    number: int
    fitting: np.ndarray
    asked: np.ndarray


def rehearsals_of(table: Table, part: np.ndarray, label_outlier: float | None, most: int) -> list[Rehearsal]:
    """Return at most `most` rehearsals of a fold's question, the one on its valid rows first; none without such rows.

    Shapes: part (rows of the table,) of train | valid | test | unused.
    """
    known = training_rows(table, part, None)
    times = table.select(tag=Tag.TIME)
    when = pd.DatetimeIndex(table.frame.loc[known, times[0]]) if times else None
    found = []
    for number, (fitting, asked) in enumerate(rehearsals(part[known] == "valid", when)[:most]):
        rows = np.full(len(part), "held out", dtype=object)
        rows[np.flatnonzero(known)[fitting]] = "train"
        chosen = np.zeros(len(part), dtype=bool)
        chosen[np.flatnonzero(known)[asked]] = True
        found.append(Rehearsal(number, training_rows(table, rows, label_outlier), chosen & judged(table)))
    return [one for one in found if one.fitting.any() and one.asked.any()]


def rehearse(
    table: Table, rehearsed: Sequence[Rehearsal], make: Callable[[int], Predictor], seed: int, fold: int
) -> pd.DataFrame:
    """Return the predictions of every rehearsal, as `as_predictions` with the column `rehearsal`."""
    parts = [pd.DataFrame(columns=["row", "task", "entity", "target", "measured", "predicted", "rehearsal"])]
    for one in rehearsed:
        predictor = fit(make(seed), table, one.fitting, None)
        forecast = as_predictions(predictor, table, one.asked, fold, seed)
        parts.append(forecast.assign(rehearsal=one.number))
    kept = [part for part in parts if not part.empty]
    return pd.concat(kept, ignore_index=True) if kept else parts[0]


def first_error(rehearsed: pd.DataFrame) -> float | None:
    """Return the mean absolute percentage error of the first rehearsal, None where it was not held."""
    first = rehearsed[rehearsed["rehearsal"] == 0]
    if first.empty:
        return None
    return float((first["predicted"] / first["measured"] - 1).abs().mean() * 100)


def distances_of(table: Table, folds: pd.DataFrame, label_outlier: float | None, most: int) -> pd.DataFrame:
    """Return how far the machines of every rehearsal and of the test part are from the rows fitted on.

    Shapes: one row per fold, rehearsal (`TEST`: the test part) and row asked, with the columns fold, rehearsal, row
    and those of `Support`.
    """
    parts = []
    for fold, name in enumerate(folds.columns):
        part = folds[name].to_numpy()
        final = Rehearsal(TEST, training_rows(table, part, label_outlier), judged_rows(table, part))
        held = [final, *rehearsals_of(table, part, label_outlier, most)]
        parts += [_distances(table, one).assign(fold=fold) for one in held]
    return pd.concat(parts, ignore_index=True)


def calibrate(
    table: Table, make: Callable[[int], Predictor], seed: int, label_outlier: float | None, most: int
) -> Calibrated | None:
    """Return how sure a predictor fitted on every row is, None where there are too few rows to rehearse.

    It rehearses the last year and, with more rehearsals, earlier ones; a data set that knows no time rehearses a draw
    of a sixth of its entities.
    """
    part = np.full(len(table.frame), "train", dtype=object)
    known = training_rows(table, part, label_outlier)
    valid = last_year(table, known)
    entities = table.frame.loc[known, table.one(Tag.ENTITY)].astype(str)
    if valid is None:
        distinct = np.sort(entities.unique())
        drawn = np.random.default_rng(seed).choice(distinct, len(distinct) // _DRAWN, replace=False)
        valid = entities.isin(drawn).to_numpy()
    part[np.flatnonzero(known)[valid]] = "valid"
    held = rehearsals_of(table, part, label_outlier, most)
    rehearsed = rehearse(table, held, make, seed, 0)
    if rehearsed.empty:
        return None
    told = rehearsed.merge(pd.concat([_distances(table, one) for one in held]), on=["rehearsal", "row"])
    support = _support(table, known)
    residuals = np.log(told["predicted"].to_numpy(dtype=float) / told["measured"].to_numpy(dtype=float))
    questions = questions_of(told["task"], told["target"])
    calibration = Calibration().fit(residuals, questions, told["rehearsal"].to_numpy(), told[support.names])
    return Calibrated(support, calibration)


def _support(table: Table, rows: np.ndarray) -> Support:
    return Support().fit(table.frame.loc[rows], table.columns, _when(table, rows))


def _when(table: Table, rows: np.ndarray) -> pd.Series | None:
    times = table.select(tag=Tag.TIME)
    return table.frame.loc[rows, times[0]] if times else None


def _distances(table: Table, one: Rehearsal) -> pd.DataFrame:
    found = _support(table, one.fitting).distances(table.frame.loc[one.asked], _when(table, one.asked))
    found.insert(0, "row", table.frame.loc[one.asked, table.one(Tag.ROW)])
    return found.assign(rehearsal=one.number)
