"""Rehearsals: the split's own valid rows first, and earlier launches where the question is about the future."""

import numpy as np
import pandas as pd

from perfcast.predictors._rehearsals import rehearsals

DAYS = pd.date_range("2018-01-01", "2022-12-31", freq="D")
LAST_YEAR = np.asarray(DAYS >= "2022-01-01")


def test_a_question_about_the_future_is_rehearsed_at_earlier_cuts():
    pairs = rehearsals(LAST_YEAR, DAYS)
    assert len(pairs) == 4
    for years, (fitting, choosing) in enumerate(pairs[1:], start=1):
        assert DAYS[fitting].max() < pd.Timestamp(f"{2022 - years}-01-01") <= DAYS[choosing].min()
        assert DAYS[choosing].max() < pd.Timestamp(f"{2024 - years}-01-01")


def test_the_splits_own_valid_rows_come_first():
    fitting, choosing = rehearsals(LAST_YEAR, DAYS)[0]
    assert (choosing == LAST_YEAR).all() and (fitting == ~LAST_YEAR).all()


def test_valid_rows_among_the_others_are_the_only_rehearsal():
    valid = np.arange(len(DAYS)) % 8 == 0
    assert len(rehearsals(valid, DAYS)) == 1
    assert len(rehearsals(LAST_YEAR, None)) == 1


def test_a_rehearsal_with_hardly_any_past_is_not_held():
    late = pd.DatetimeIndex(np.where(np.arange(len(DAYS)) < 5, DAYS, pd.Timestamp("2021-06-01") + (DAYS - DAYS[0]) / 4))
    valid = np.asarray(late > "2022-01-01")
    assert len(rehearsals(valid, late)) == 1


def test_without_valid_rows_there_is_nothing_to_rehearse():
    assert rehearsals(np.zeros(5, dtype=bool), DAYS[:5]) == []
    assert rehearsals(np.ones(5, dtype=bool), DAYS[:5]) == []
