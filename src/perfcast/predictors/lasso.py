"""Lasso regression of log targets, one per task."""

from __future__ import annotations

from collections.abc import Sequence

from perfcast.predictors._linear_models import SparsePredictor


class LassoPredictor(SparsePredictor):
    """Least squares of log targets with a penalty `alpha` on absolute weights, separately for every task.

    Of columns that say the same it keeps one, so its weights name the few columns that a forecast rests on. How
    `alpha` is chosen: see `LinearPredictor`; `sweeps` bounds the coordinate descent.
    Source: Tibshirani, 1996, Journal of the Royal Statistical Society B 58(1); the descent: Friedman, Hastie and
    Tibshirani, 2010, Journal of Statistical Software 33(1).
    """

    l1_ratios = (1.0,)
    _file = "lasso.json"

    def __init__(
        self,
        *,
        alphas: Sequence[float] = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
        default_alpha: float = 3e-4,
        min_count: int = 20,
        clip: float = 1.0,
        sweeps: int = 10000,
    ) -> None:
        self.alphas = alphas
        self.default_alpha = default_alpha
        self.min_count = min_count
        self.clip = clip
        self.sweeps = sweeps
