"""Expected absolute error at distances from the training rows, fitted by likelihood to the residuals of backtests."""

from __future__ import annotations

import numpy as np

_MIN_BASE = 0.02
"""Least error at distance 0, as a share of the mean error: errors there are never quite 0."""

_CUT_QUANTILE = 0.99
"""Quantile at which residuals are cut off before their size is explained: a mistyped score explains nothing."""


def fit_expected_error(
    sizes: np.ndarray, distances: np.ndarray, share: np.ndarray, penalty: float
) -> tuple[float, np.ndarray]:
    """Return base and weights of the expected error, base + distances @ weights, none of them negative.

    They maximize the likelihood of errors with a Laplace distribution of that mean absolute size. Least squares of the
    sizes would be ruled by the largest errors; the likelihood compares each error with its expectation. `penalty` times
    the sum of (weight / mean error)^2 is added to the mean negative logarithm of the likelihood.
    Shapes: sizes (n,) absolute residuals; distances (n, names); share (n,) weights of the rows -> weights (names,).
    """
    from scipy.optimize import minimize  # predictions, which import this module, need none of it

    share = share / share.sum()
    cut = np.minimum(sizes, np.quantile(sizes, _CUT_QUANTILE))
    mean = max(float(share @ cut), 1e-9)
    cut, names = cut / mean, distances.shape[1]
    explained = np.column_stack([np.ones(len(cut)), distances])

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        expected, weights = explained @ values, values[1:]
        gradient = explained.T @ (share * (1 / expected - cut / expected**2))
        gradient[1:] += 2 * penalty * weights
        return float(share @ (np.log(expected) + cut / expected) + penalty * weights @ weights), gradient

    start = np.append(0.5, np.full(names, 0.5 / max(names, 1)))
    bounds = [(_MIN_BASE, None), *[(0.0, None)] * names]
    values = mean * minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(values[0]), values[1:]
