"""Backtests: the validation rows first, and earlier origins of a forward split."""

import numpy as np
import pandas as pd

from perfcast.uncertainty.backtest import backtest_pairs

DAYS = pd.date_range("2018-01-01", "2022-12-31", freq="D")
LAST_YEAR = np.asarray(DAYS >= "2022-01-01")


def test_backtest_pairs_of_a_forward_split_have_earlier_cuts():
    pairs = backtest_pairs(LAST_YEAR, DAYS)
    assert len(pairs) == 4
    for years, (fitting, choosing) in enumerate(pairs[1:], start=1):
        assert DAYS[fitting].max() < pd.Timestamp(f"{2022 - years}-01-01") <= DAYS[choosing].min()
        assert DAYS[choosing].max() < pd.Timestamp(f"{2024 - years}-01-01")


def test_backtest_pairs_start_with_the_validation_rows():
    fitting, choosing = backtest_pairs(LAST_YEAR, DAYS)[0]
    assert (choosing == LAST_YEAR).all() and (fitting == ~LAST_YEAR).all()


def test_backtest_pairs_of_mixed_validation_rows_is_one():
    validation = np.arange(len(DAYS)) % 8 == 0
    assert len(backtest_pairs(validation, DAYS)) == 1
    assert len(backtest_pairs(LAST_YEAR, None)) == 1


def test_backtest_pairs_need_a_tenth_of_the_rows():
    late = pd.DatetimeIndex(np.where(np.arange(len(DAYS)) < 5, DAYS, pd.Timestamp("2021-06-01") + (DAYS - DAYS[0]) / 4))
    validation = np.asarray(late > "2022-01-01")
    assert len(backtest_pairs(validation, late)) == 1


def test_backtest_pairs_need_validation_rows():
    assert backtest_pairs(np.zeros(5, dtype=bool), DAYS[:5]) == []
    assert backtest_pairs(np.ones(5, dtype=bool), DAYS[:5]) == []
