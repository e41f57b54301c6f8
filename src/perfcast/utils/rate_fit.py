"""Fit of a sum of non-negative amounts to times, by absolute relative errors."""

from __future__ import annotations

import numpy as np

_N_ITERATIONS = 30
_MIN_RESIDUAL = 0.01
"""Relative residuals below this count by their squares, larger ones by their absolute value."""


def fit_rates(design: np.ndarray, time: np.ndarray, rows: np.ndarray) -> list[float]:
    """Return the coefficients c >= 0 of time = sum of c_j x_j that suit some rows best.

    Reweighted least squares minimize absolute relative errors, so single disturbed rows and the longest times have
    little influence.

    Args:
        design: Amounts.
        time: Measured times, positive.
        rows: Rows to fit on, at least one.

    Shapes:
        design (n, p), time (n,), rows (n,) bool -> (p,).

    Source: non-negative least squares by Lawson and Hanson, 1974, Solving Least Squares Problems.
    """
    from scipy.optimize import nnls  # a prediction does without this import

    relative = design[rows] / time[rows, None]
    # Each amount is scaled to a mean of 1; an amount that is always 0 stays without influence.
    scale = relative.mean(axis=0)
    scale[scale == 0] = 1.0
    relative = relative / scale
    weight = np.ones(len(relative))
    for _ in range(_N_ITERATIONS):
        solution, _ = nnls(relative * np.sqrt(weight)[:, None], np.sqrt(weight))
        weight = 1 / np.maximum(np.abs(relative @ solution - 1), _MIN_RESIDUAL)
    return [float(value) for value in solution / scale]
