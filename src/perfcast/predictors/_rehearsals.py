"""Rehearsals of the question inside training: which rows to fit on, and which to choose by."""

from __future__ import annotations

import numpy as np
import pandas as pd

_YEARS_BACK = (1, 2, 3)
_AHEAD = pd.DateOffset(months=24)
_LEAST_SHARE = 0.1


def rehearsals(valid: np.ndarray, when: pd.DatetimeIndex | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of rows to fit on and rows to choose by, the split's own valid rows first; none without them.

    Where the valid rows are later than all others the question is about the future, and one launch is too few to
    choose by: the same question is asked one, two and three years earlier as well, each about the next 24 months, as
    long as a tenth of the rows is left to fit on.
    Shapes: valid and when (n,); every pair (n,) bool.
    """
    if not valid.any() or valid.all():
        return []
    pairs = [(~valid, valid)]
    if when is None or not (when[valid].min() > when[~valid].max()):
        return pairs
    for years in _YEARS_BACK:
        cut = when[valid].min() - pd.DateOffset(years=years)
        fitting = np.asarray(when < cut, dtype=bool)
        choosing = np.asarray((when >= cut) & (when < cut + _AHEAD), dtype=bool)
        if fitting.mean() >= _LEAST_SHARE and choosing.any():
            pairs.append((fitting, choosing))
    return pairs
