"""Mean of the logarithms that several predictors give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.predictors.factory import Composite, Nested, load_nested, save_nested
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state


@dataclass(kw_only=True, eq=False, repr=False)
class Mean(Composite):
    """ln y = mean of ln y_m over the members, with equal weights.

    Source: equal weights after Bates and Granger, The Combination of Forecasts, 1969, Operational Research Quarterly
    20(4).
    """

    members: Mapping[str, Nested | None]

    members_: dict[str, Predictor] = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        y = pd.DataFrame(np.exp(log_y), index=X.index, columns=list(self.targets_))
        when = None if self._when is None else pd.Series(self._when, index=X.index)
        self.members_ = {
            name: member.fit(X, y, columns=self.columns_, validation=validation, when=when)
            for name, member in self._construct(self.members).items()
        }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(np.mean([predict_logs(member, X) for member in self.members_.values()], axis=0))

    def predict_deviations(self, X: pd.DataFrame) -> np.ndarray | None:
        """Return the mean of the deviations of the members that have them: no less than that of the mean error."""
        known = [each for member in self.members_.values() if (each := member.predict_deviations(X)) is not None]
        return np.asarray(np.mean(known, axis=0)) if known else None

    def _save(self, folder: Path) -> None:
        write_json(folder / "members.json", {"members": list(self.members_)})
        save_nested(folder, self.members_)

    def _load(self, folder: Path) -> None:
        self.members_ = load_nested(folder, read_state(folder / "members.json")["members"])
