"""Rolling predictions: those of a frozen predictor, corrected by the results of the months before."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd

from perfcast.schema.table import Role, Table, Tag
from perfcast.uncertainty.levels import ErrorLevels, ErrorRows, TrainedLabels, outputs_of, shared_labels

REMAINING = "remaining"
"""Column of rolling predictions and their backtests: the factor that known errors leave of the width of an interval."""


def log_errors(predictions: pd.DataFrame) -> np.ndarray:
    """Return log measured - log predicted, (n,)."""
    measured, predicted = (predictions[name].to_numpy(dtype=float) for name in ("measured", "predicted"))
    return np.asarray(np.log(measured / predicted))


def error_rows(predictions: pd.DataFrame, table: Table) -> ErrorRows:
    """Return the rows of the errors of predictions, with the labels that the table has."""
    labels = shared_labels(table).iloc[_places(predictions, table)].reset_index(drop=True)
    return ErrorRows(labels, outputs_of(predictions["task"], predictions["target"]))


def months_of(predictions: pd.DataFrame, table: Table) -> np.ndarray:
    """Return the month in which the score of every prediction was published, (n,)."""
    return np.asarray(table.frame[table.column_of(Tag.TIME)].to_numpy()[_places(predictions, table)])


def _places(predictions: pd.DataFrame, table: Table) -> np.ndarray:
    keys = pd.Index(table.frame[table.column_of(Tag.ROW)])
    return np.asarray(keys.get_indexer(pd.Index(predictions["row"])))


def count_trained(table: Table, rows: np.ndarray) -> TrainedLabels:
    """Return how many submissions of the rows that a predictor is trained on, (n,) bool, have each label."""
    frame = table.frame
    labels = shared_labels(table)
    units = frame[(table.select(tag=Tag.BLOCK) or [table.column_of(Tag.ROW)])[0]].astype(str).to_numpy(dtype=object)
    parts = list[pd.DataFrame]()
    outputs = list[np.ndarray]()
    counted = list[np.ndarray]()
    for target in table.select(role=Role.TARGET):
        measured = rows & frame[target].notna().to_numpy()
        parts.append(labels[measured])
        outputs.append(outputs_of(frame.loc[measured, table.column_of(Tag.TASK)], target))
        counted.append(units[measured])
    trained = ErrorRows(pd.concat(parts, ignore_index=True), np.concatenate(outputs))
    return trained.count(np.concatenate(counted))


def count_earlier(predictions: pd.DataFrame, table: Table) -> TrainedLabels:
    """Return `count_trained` of the rows that are earlier than all predicted ones: those of a forecast's training."""
    first = months_of(predictions, table).min()
    return count_trained(table, (table.frame[table.column_of(Tag.TIME)] < first).to_numpy())


def fit_levels(
    backtests: pd.DataFrame, table: Table, trained: Mapping[int, TrainedLabels] = MappingProxyType({})
) -> ErrorLevels:
    """Fit the levels of errors to backtests of a predictor; `trained` has the labels of each one's training."""
    errors = log_errors(backtests)
    numbers = backtests["backtest"].to_numpy()
    return ErrorLevels().fit(errors, error_rows(backtests, table), numbers, trained)


def fit_forecast_levels(backtests: pd.DataFrame, table: Table) -> ErrorLevels:
    """Fit the levels of errors to backtests that are forecasts: training rows are earlier than all of their rows."""
    numbers = backtests["backtest"]
    trained = {int(each): count_earlier(backtests[numbers == each], table) for each in np.unique(numbers)}
    return fit_levels(backtests, table, trained)


def roll_predictions(levels: ErrorLevels, predictions: pd.DataFrame, table: Table, by: str) -> pd.DataFrame:
    """Return predictions of a frozen predictor, each corrected by the errors of earlier months of its group `by`."""
    parts = []
    for _, part in predictions.groupby(by, sort=False):
        errors = log_errors(part)
        rows = error_rows(part, table)
        months = months_of(part, table)
        expected, factors = levels.roll(errors, rows, months, count_earlier(part, table))
        parts.append(part.assign(**{"predicted": part["predicted"] * np.exp(expected), REMAINING: factors}))
    return pd.concat(parts, ignore_index=True)
