"""Fit a predictor to some rows of a table, and pair its predictions of other rows with the measured scores."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Role, Table, Tag


def _inputs(table: Table, rows: np.ndarray) -> pd.DataFrame:
    return table.frame.loc[rows, [column.name for column in table.columns if column.role is not Role.TARGET]]


def fit_rows(predictor: Predictor, table: Table, rows: np.ndarray, validation: np.ndarray | None) -> Predictor:
    """Fit on some rows of the table; `validation` marks, among them, those that choices are made on."""
    # a score that no training row has cannot be learned, and is not predicted
    targets = table.frame.loc[rows, table.select(role=Role.TARGET)].dropna(axis=1, how="all")
    times = table.select(tag=Tag.TIME)
    when = table.frame.loc[rows, times[0]] if times else None
    return predictor.fit(_inputs(table, rows), targets, columns=table.columns, validation=validation, when=when)


def predict_rows(predictor: Predictor, table: Table, rows: np.ndarray, fold: int, seed: int) -> pd.DataFrame:
    """Return long predictions: one line per row and target that is measured, and that training has for the task."""
    frame, X = table.frame.loc[rows], _inputs(table, rows)
    predicted, learned = predictor.predict(X), predictor.requested_outputs(X)
    lines = []
    for index, target in enumerate(predicted.columns):
        lines.append(
            pd.DataFrame(
                {
                    "row": frame[table.column_of(Tag.ROW)],
                    "task": frame[table.column_of(Tag.TASK)],
                    "entity": frame[table.column_of(Tag.ENTITY)],
                    "fold": fold,
                    "seed": seed,
                    "target": target,
                    "measured": frame[target].where(learned[:, index]),
                    "predicted": predicted[target],
                }
            )
        )
    long = pd.concat(lines, ignore_index=True)
    return long[long["measured"].notna()].reset_index(drop=True)
