"""Ridge regression of log targets, one per task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfcast.predictors._linear_models import LinearPredictor


class RidgePredictor(LinearPredictor):
    """Least squares of log targets with a penalty `alpha` on squared weights, separately for every task.

    How `alpha` is chosen: see `LinearPredictor`.
    Source: Hoerl and Kennard, 1970, Technometrics 12(1).
    """

    l1_ratios = (0.0,)
    _file = "ridge.json"

    def __init__(
        self,
        *,
        alphas: Sequence[float] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        default_alpha: float = 1e-3,
        min_count: int = 20,
        clip: float = 1.0,
    ) -> None:
        self.alphas = alphas
        self.default_alpha = default_alpha
        self.min_count = min_count
        self.clip = clip

    def _path(self, encoded: np.ndarray, log_y: np.ndarray, alphas: Sequence[float], l1_ratio: float) -> np.ndarray:
        return _solve(encoded, log_y, alphas)


def _solve(encoded: np.ndarray, log_y: np.ndarray, alphas: Sequence[float]) -> np.ndarray:
    """Return the ridge solutions for several penalties from one eigendecomposition.

    Shapes: encoded (n, p), log_y (n,) -> (penalties, 1 + p), the constant first.
    """
    centre, constant = encoded.mean(axis=0), log_y.mean()
    centred = encoded - centre
    values, vectors = np.linalg.eigh(centred.T @ centred / len(encoded))
    projected = vectors.T @ (centred.T @ (log_y - constant) / len(encoded))
    # Rounding makes eigenvalues of a rank-deficient matrix slightly negative.
    weights = [vectors @ (projected / (np.maximum(values, 0.0) + alpha)) for alpha in alphas]
    return np.array([np.concatenate([[constant - centre @ one], one]) for one in weights])
