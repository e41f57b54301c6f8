"""Mean of the composition of operators, the roofline hybrid and gradient boosting.

Apart from the members, because LightGBM is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.hybrid.composition import CompositionTreesPredictor
from perfcast.predictors.hybrid.residual_stacking import predict_logs
from perfcast.predictors.hybrid.roofline_hybrids import RooflineTreesPredictor
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state


@dataclass(kw_only=True, eq=False, repr=False)
class CompositionEnsemblePredictor(Predictor):
    """ln y = mean of ln y_m over `composition_trees`, `roofline_trees` and `lightgbm`, with equal weights.

    The first two extrapolate by different physics and the third by none, so their errors differ. Of all means of one to
    four predictors of `llm_serving`, this one has the smallest error over the backtests of its seven splits.
    Source: equal weights after Bates and Granger, The Combination of Forecasts, 1969, Operational Research Quarterly
    20(4).
    """

    n_estimators: int = 60
    """Of the trees on the residuals."""
    boosting_n_estimators: int = 1000
    early_stopping_rounds: int = 50
    learning_rate: float = 0.1
    colsample_bytree: float = 0.5
    random_state: int = 0

    members_: dict[str, Predictor] = field(init=False)

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

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        y = pd.DataFrame(np.exp(log_y), index=X.index, columns=list(self.targets_))
        when = None if self._when is None else pd.Series(self._when, index=X.index)
        self.members_ = {
            name: member.fit(X, y, columns=self.columns_, validation=validation, when=when)
            for name, member in self._new_members().items()
        }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs: np.ndarray = np.mean([predict_logs(member, X) for member in self.members_.values()], axis=0)
        return logs

    def _save(self, folder: Path) -> None:
        write_json(folder / "members.json", {"members": list(self.members_)})
        for name, member in self.members_.items():
            member.save(folder / name)

    def _load(self, folder: Path) -> None:
        names = read_state(folder / "members.json")["members"]
        self.members_ = {name: load_predictor(folder / name) for name in names}
