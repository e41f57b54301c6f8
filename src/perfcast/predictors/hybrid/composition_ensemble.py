"""Mean of the composition of operators, the roofline hybrid and gradient boosting.

Apart from the members, because LightGBM is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.hybrid.composition import CompositionTreesPredictor
from perfcast.predictors.hybrid.roofline_hybrids import RooflineTreesPredictor
from perfcast.predictors.log_mean import LogMeanPredictor
from perfcast.predictors.predictor import Predictor


@dataclass(kw_only=True, eq=False, repr=False)
class CompositionEnsemblePredictor(LogMeanPredictor):
    """ln y = mean of ln y_m over `composition_trees`, `roofline_trees` and `lightgbm`, with equal weights.

    The first two extrapolate by different physics and the third by none, so their errors differ. Of all means of one to
    four predictors of `llm_serving`, this one has the smallest error over the backtests of its seven splits.
    """

    n_estimators: int = 60
    """Of the trees on the residuals."""
    boosting_n_estimators: int = 1000
    early_stopping_rounds: int = 50
    learning_rate: float = 0.1
    colsample_bytree: float = 0.5
    random_state: int = 0

    def _new_members(self) -> dict[str, Predictor]:
        return {
            "composition_trees": CompositionTreesPredictor(
                n_estimators=self.n_estimators, random_state=self.random_state
            ),
            "roofline_trees": RooflineTreesPredictor(n_estimators=self.n_estimators, random_state=self.random_state),
            "lightgbm": LightgbmPredictor(
                n_estimators=self.boosting_n_estimators,
                early_stopping_rounds=self.early_stopping_rounds,
                learning_rate=self.learning_rate,
                colsample_bytree=self.colsample_bytree,
                subsample=0.8,
                reg_lambda=1.0,
                objective="huber",
                alpha=0.05,
                min_samples_per_task=500,
                random_state=self.random_state,
            ),
        }
