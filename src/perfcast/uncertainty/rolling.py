"""Rolling predictions: those of a frozen predictor, corrected by the results of the months before."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.uncertainty.levels import ErrorLevels, ErrorRows, outputs_of, shared_labels

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


def fit_levels(backtests: pd.DataFrame, table: Table) -> ErrorLevels:
    """Fit the levels of errors to backtests of a predictor."""
    return ErrorLevels().fit(log_errors(backtests), error_rows(backtests, table), backtests["backtest"].to_numpy())


def roll_predictions(levels: ErrorLevels, predictions: pd.DataFrame, table: Table, by: str) -> pd.DataFrame:
    """Return predictions of a frozen predictor, each corrected by the errors of earlier months of its group `by`."""
    parts = []
    for _, part in predictions.groupby(by, sort=False):
        expected, factors = levels.roll(log_errors(part), error_rows(part, table), months_of(part, table))
        parts.append(part.assign(**{"predicted": part["predicted"] * np.exp(expected), REMAINING: factors}))
    return pd.concat(parts, ignore_index=True)
