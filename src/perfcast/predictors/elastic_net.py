"""Elastic-net regression of log targets, one per task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfcast.io import read_json
from perfcast.predictors._linear_models import SparsePredictor


class ElasticNetPredictor(SparsePredictor):
    """Least squares of log targets with a penalty on absolute and on squared weights, separately for every task.

    The penalty is alpha (l1_ratio |w| + (1 - l1_ratio) w^2 / 2). Unlike the lasso it shares a weight among columns
    that say the same. How `alpha` and `l1_ratio` are chosen together: see `LinearPredictor`; `sweeps` bounds the
    coordinate descent.
    Source: Zou and Hastie, 2005, Journal of the Royal Statistical Society B 67(2).
    """

    _file = "elastic_net.json"

    def __init__(
        self,
        *,
        alphas: Sequence[float] = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
        l1_ratios: Sequence[float] = (0.5, 0.1, 0.9),
        default_alpha: float = 3e-4,
        min_count: int = 20,
        clip: float = 1.0,
        sweeps: int = 10000,
    ) -> None:
        self.alphas = alphas
        self.l1_ratios = l1_ratios
        self.default_alpha = default_alpha
        self.min_count = min_count
        self.clip = clip
        self.sweeps = sweeps

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "l1_ratios": self.l1_ratios_}

    def _load(self, folder: Path) -> None:
        super()._load(folder)
        self.l1_ratios_ = read_json(folder / self._file)["l1_ratios"]
