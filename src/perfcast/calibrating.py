"""How far the machines that were asked about are from the rows fitted on, and the calibration that follows from it.

Apart from `rehearsal.py`, which training imports: how intervals are made may change without training anything anew.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from perfcast.intervals import TEST, Calibrated, Calibration, Correlation, Support, labels_of, questions_of
from perfcast.parts import judged_rows, last_year, training_rows
from perfcast.predictors.base import Predictor
from perfcast.rehearsal import Rehearsal, rehearsals_of, rehearse
from perfcast.schema import Table, Tag

_DRAWN = 6
"""One entity in so many is drawn where there is no last year to rehearse."""


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
    entities = table.frame.loc[known, table.column_of(Tag.ENTITY)].astype(str)
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
    labels = labels_of(table).set_axis(table.frame[table.column_of(Tag.ROW)].to_numpy(), axis=0)
    alike = Correlation().fit(
        residuals,
        labels.loc[told["row"]],
        questions,
        rehearsals=told["rehearsal"].to_numpy(),
        typical=calibration.typical(told[support.names]),
    )
    return Calibrated(support, calibration, alike)


def _support(table: Table, rows: np.ndarray) -> Support:
    return Support().fit(table.frame.loc[rows], table.columns, _when(table, rows))


def _when(table: Table, rows: np.ndarray) -> pd.Series | None:
    times = table.select(tag=Tag.TIME)
    return table.frame.loc[rows, times[0]] if times else None


def _distances(table: Table, one: Rehearsal) -> pd.DataFrame:
    found = _support(table, one.fitting).distances(table.frame.loc[one.asked], _when(table, one.asked))
    found.insert(0, "row", table.frame.loc[one.asked, table.column_of(Tag.ROW)])
    return found.assign(rehearsal=one.number)
