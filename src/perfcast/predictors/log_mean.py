"""Mean of the logarithms that several predictors give."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state


@dataclass(kw_only=True, eq=False, repr=False)
class LogMeanPredictor(Predictor):
    """ln y = mean of ln y_m over the members, with equal weights.

    Source: equal weights after Bates and Granger, The Combination of Forecasts, 1969, Operational Research Quarterly
    20(4).
    """

    members_: dict[str, Predictor] = field(init=False)

    @abstractmethod
    def _new_members(self) -> dict[str, Predictor]:
        """Return the members by name, not fitted."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        y = pd.DataFrame(np.exp(log_y), index=X.index, columns=list(self.targets_))
        when = None if self._when is None else pd.Series(self._when, index=X.index)
        self.members_ = {
            name: member.fit(X, y, columns=self.columns_, validation=validation, when=when)
            for name, member in self._new_members().items()
        }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(np.mean([np.log(member.predict(X).to_numpy()) for member in self.members_.values()], axis=0))

    def _save(self, folder: Path) -> None:
        write_json(folder / "members.json", {"members": list(self.members_)})
        for name, member in self.members_.items():
            member.save(folder / name)

    def _load(self, folder: Path) -> None:
        names = read_state(folder / "members.json")["members"]
        self.members_ = {name: load_predictor(folder / name) for name in names}
