"""Mean of the logarithms that several predictors give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import finite_range, named_numbers
from perfcast.predictors.factory import Composite, Nested, load_nested, save_nested
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state


@dataclass(kw_only=True, eq=False, repr=False)
class Mean(Composite):
    """ln y = mean of ln y_m over the members, with equal weights.

    `within` names a column for some members. Such a member takes no part in a row whose value is outside the range of
    the training rows: a smooth function of data ends with them, a law does not. A row without the value counts as
    inside. Where no member takes part, all do.

    Source: equal weights after Bates and Granger, The Combination of Forecasts, 1969, Operational Research Quarterly
    20(4).
    """

    members: Mapping[str, Nested | None]
    within: Mapping[str, str] | None = None

    members_: dict[str, Predictor] = field(init=False)
    ranges_: dict[str, list[float]] = field(init=False)
    """Smallest and largest value in training, by the columns of `within`."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        y = pd.DataFrame(np.exp(log_y), index=X.index, columns=list(self.targets_))
        when = None if self._when is None else pd.Series(self._when, index=X.index)
        self.members_ = {
            name: member.fit(X, y, columns=self.columns_, validation=validation, when=when)
            for name, member in self._construct(self.members).items()
        }
        ranges = {name: finite_range(named_numbers(X, self.columns_, name)) for name in (self.within or {}).values()}
        self.ranges_ = {name: known for name, known in ranges.items() if known}

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = np.array([predict_logs(member, X) for member in self.members_.values()])
        within = self.within or {}
        shares = np.array([self._is_inside(X, within.get(name)) for name in self.members_], dtype=float)
        shares[:, ~shares.any(axis=0)] = 1.0
        shares /= shares.sum(axis=0)
        return np.asarray((shares[:, :, None] * logs).sum(axis=0))

    def _is_inside(self, X: pd.DataFrame, name: str | None) -> np.ndarray:
        """Return whether the values of a column are not outside its range in training, (n,); of None all are inside."""
        if name not in self.ranges_:
            return np.ones(len(X), dtype=bool)
        low, high = self.ranges_[name]
        values = named_numbers(X, self.columns_, name)
        return ~((values < low) | (values > high))

    def predict_deviations(self, X: pd.DataFrame) -> np.ndarray | None:
        """Return the mean of the deviations of the members that have them: no less than that of the mean error."""
        known = [each for member in self.members_.values() if (each := member.predict_deviations(X)) is not None]
        return np.asarray(np.mean(known, axis=0)) if known else None

    def _save(self, folder: Path) -> None:
        write_json(folder / "members.json", {"members": list(self.members_), "ranges": self.ranges_})
        save_nested(folder, self.members_)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "members.json")
        self.members_ = load_nested(folder, state["members"])
        self.ranges_ = state["ranges"]
