"""Backtests of a fold: predictions made inside its training part, for the same kind of split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.experiment.fitting import fit_rows, predict_rows
from perfcast.experiment.row_masks import evaluated_rows, training_rows
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Table, Tag
from perfcast.uncertainty.backtest import backtest_pairs


@dataclass(frozen=True)
class Backtest:
    """Rows to fit on and rows to predict, all of them inside training. Shapes: (rows of the table,) bool."""

    number: int
    fitting: np.ndarray
    testing: np.ndarray


def plan_backtests(table: Table, subset: np.ndarray, label_outlier: float | None, limit: int) -> list[Backtest]:
    """Return at most `limit` backtests of a fold, that on its validation rows first; none without such rows.

    Shapes: subset (rows of the table,) of train | validation | test | unused.
    """
    known = training_rows(table, subset, None)
    times = table.select(tag=Tag.TIME)
    when = pd.DatetimeIndex(table.frame.loc[known, times[0]]) if times else None
    backtests = []
    for number, (fitting, testing) in enumerate(backtest_pairs(subset[known] == "validation", when)[:limit]):
        inner = np.full(len(subset), "held out", dtype=object)
        inner[np.flatnonzero(known)[fitting]] = "train"
        tested = np.zeros(len(subset), dtype=bool)
        tested[np.flatnonzero(known)[testing]] = True
        backtests.append(Backtest(number, training_rows(table, inner, label_outlier), tested & evaluated_rows(table)))
    return [backtest for backtest in backtests if backtest.fitting.any() and backtest.testing.any()]


def run_backtests(
    table: Table, backtests: Sequence[Backtest], make: Callable[[int], Predictor], seed: int, fold: int
) -> pd.DataFrame:
    """Return the predictions of every backtest, as `predict_rows` with the column `backtest`, its number."""
    lines = [pd.DataFrame(columns=["row", "task", "entity", "target", "measured", "predicted", "backtest"])]
    for backtest in backtests:
        predictor = fit_rows(make(seed), table, backtest.fitting, None)
        predictions = predict_rows(predictor, table, backtest.testing, fold, seed)
        lines.append(predictions.assign(backtest=backtest.number))
    filled = [frame for frame in lines if not frame.empty]
    return pd.concat(filled, ignore_index=True) if filled else lines[0]


def first_error(predictions: pd.DataFrame) -> float | None:
    """Return the MAPE (%) of the first backtest, None where there is none."""
    first = predictions[predictions["backtest"] == 0]
    if first.empty:
        return None
    return float((first["predicted"] / first["measured"] - 1).abs().mean() * 100)
