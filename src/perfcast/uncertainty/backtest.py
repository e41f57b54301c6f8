"""Rows of the backtests inside a training part: those to fit on, and those to predict."""

from __future__ import annotations

import numpy as np
import pandas as pd

_YEARS_BACK = (1, 2, 3)
_AHEAD = pd.DateOffset(months=24)
_MIN_SHARE = 0.1


def backtest_pairs(
    validation: np.ndarray, when: pd.DatetimeIndex | None, *, by_round: bool = False
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of rows to fit on and rows to predict, the validation rows first; none without them.

    Where all validation rows are later than the other ones, the split is a forward split, and one release is too few
    to choose by. The origin then also rolls back by one, two and three years, with the next 24 months to predict, as
    long as a tenth of the rows remains to fit on.
    Results of rounds are predicted `by_round`: every earlier round from all the rounds before it.
    Shapes: validation and when (n,); every pair (n,) bool.
    """
    if not validation.any() or validation.all():
        return []
    pairs = [(~validation, validation)]
    if when is None or not (when[validation].min() > when[~validation].max()):
        return pairs
    if by_round:
        earlier = when[~validation].unique().sort_values(ascending=False)
        parts = ((np.asarray(when < day), np.asarray(when == day)) for day in earlier)
        return pairs + [(fitting, testing) for fitting, testing in parts if fitting.mean() >= _MIN_SHARE]
    for years in _YEARS_BACK:
        cut = when[validation].min() - pd.DateOffset(years=years)
        fitting = np.asarray(when < cut, dtype=bool)
        testing = np.asarray((when >= cut) & (when < cut + _AHEAD), dtype=bool)
        if fitting.mean() >= _MIN_SHARE and testing.any():
            pairs.append((fitting, testing))
    return pairs
