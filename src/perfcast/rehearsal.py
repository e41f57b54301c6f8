"""Rehearsals of a split's question inside the training part of a fold: forecasts that training itself can judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.fitting import as_predictions, fit
from perfcast.parts import judged, training_rows
from perfcast.predictors._rehearsals import rehearsals
from perfcast.predictors.base import Predictor
from perfcast.schema import Table, Tag


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
