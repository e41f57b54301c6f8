"""Nothing fitted, chosen or backtested depends on a test row: all of them become nonsense, and all is fitted again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from factory import tiny_table
from test_predictors import FITTED, assert_same, build, need_packages

from perfcast.experiment import fitting
from perfcast.experiment.training import FoldFit, fit_folds
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Kind, Role, Table, Tag, build_table

ROWS, FIRST_VALIDATION, FIRST_TEST = 96, 52, 68


def folds() -> pd.DataFrame:
    """One fold; whole entities are in one subset."""
    subset = np.full(ROWS, "train", dtype=object)
    subset[FIRST_VALIDATION:FIRST_TEST] = "validation"
    subset[FIRST_TEST:] = "test"
    return pd.DataFrame({"fold_0": subset})


def poison(table: Table) -> Table:
    """Return the table with other cells in every test row, in the bounds of their columns; keys of rows stay."""
    rng = np.random.default_rng(1)
    frame = table.frame.copy()
    rows = frame.index[FIRST_TEST:]
    for column in table.columns:
        if Tag.ROW in column.tags or Tag.TASK in column.tags:
            continue
        if column.kind is Kind.NUMERICAL:
            high = 1e6 if column.role is Role.TARGET else 500.0
            frame.loc[rows, column.name] = rng.uniform(1.0, high, len(rows)).round()
        elif column.kind is Kind.DATE:
            # still after the training rows where they were: the dates of backtests come from training rows alone
            frame.loc[rows, column.name] = pd.Timestamp("2031-01-01")
        else:
            frame.loc[rows, column.name] = [f"poison {number}" for number in range(len(rows))]
    return build_table(table.dataset, frame, table.columns)


def fit(name: str, table: Table) -> FoldFit:
    (fitted,) = fit_folds(table, folds(), [lambda seed: build(name)], [0], 0.3)
    return fitted


def answers(fitted: FoldFit, table: Table) -> pd.DataFrame:
    """Return the predictions of training rows and of unpoisoned test rows."""
    inputs = [column.name for column in table.columns if column.role is not Role.TARGET]
    return fitted.predictor.predict(table.frame[inputs])


@pytest.mark.parametrize("name", FITTED)
def test_nothing_that_is_fitted_depends_on_test_rows(name: str) -> None:
    need_packages(name)
    table = tiny_table(ROWS)
    clean, poisoned = fit(name, table), fit(name, poison(table))
    assert_same(name, answers(clean, table), answers(poisoned, table))
    pd.testing.assert_frame_equal(clean.backtest, poisoned.backtest, rtol=1e-5 if len(clean.backtest) else 0)
    assert clean.test["measured"].median() < poisoned.test["measured"].median()


@pytest.mark.parametrize("name", ["ridge", "nearest", "lightgbm"])
def test_the_check_notices_a_training_that_reads_test_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = fitting.fit_rows

    def fit_on_all(predictor: Predictor, table: Table, rows: np.ndarray, validation: np.ndarray | None) -> Predictor:
        everything = np.ones(len(rows), dtype=bool)
        return original(predictor, table, everything, None)

    monkeypatch.setattr("perfcast.experiment.fitting.fit_rows", fit_on_all)
    table = tiny_table(ROWS)
    with pytest.raises(AssertionError):
        assert_same(name, answers(fit(name, table), table), answers(fit(name, poison(table)), table))
