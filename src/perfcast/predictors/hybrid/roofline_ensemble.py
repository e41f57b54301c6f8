"""Roofline model with factors, and two learners of its residual.

Apart from the other hybrids of the roofline model, because a Gaussian process imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.predictors.analytical.roofline_factors import RooflineFactorsPredictor
from perfcast.predictors.gaussian_process import GaussianProcessPredictor
from perfcast.predictors.hybrid.roofline_hybrids import RooflineTreesPredictor
from perfcast.predictors.predictor import Predictor


@dataclass(kw_only=True, eq=False, repr=False)
class RooflineEnsemblePredictor(RooflineTreesPredictor):
    """The roofline model with factors, with extremely randomized trees and a Gaussian process on its residual.

    The weights are chosen on the validation rows alone, if there are any: they differ from the training rows as the
    test rows of the split do.
    """

    n_estimators: int = 200
    min_samples_leaf: int = 2
    noise: float = 0.01
    length_scale_steps: int = 120
    length_scale_batch_size: int = 300

    def _new_structure(self) -> dict[str, Predictor]:
        return {"roofline_factors": RooflineFactorsPredictor()}

    def _new_learners(self) -> dict[str, Predictor]:
        process = GaussianProcessPredictor(
            noise=self.noise,
            length_scale_steps=self.length_scale_steps,
            length_scale_batch_size=self.length_scale_batch_size,
            random_state=self.random_state,
        )
        return {**super()._new_learners(), "gaussian_process": process}

    def _inner_folds(self, X: pd.DataFrame, validation: np.ndarray) -> Iterator[np.ndarray]:
        if validation.any() and not validation.all():
            yield validation
        else:
            yield from super()._inner_folds(X, validation)
