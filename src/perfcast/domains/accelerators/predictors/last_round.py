"""The last published result of the same task and accelerator, else another predictor."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.predictors.factory import Composite, Nested, load_nested, save_nested
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.predictors.task_rows import measured_rows
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_YEAR = "year"


@dataclass(kw_only=True, eq=False, repr=False)
class LastRoundPredictor(Composite):
    """Median of the last round that has the task and the accelerator, else the prediction of `other`.

    Of the rows of that round, those alike in all the columns of the first level that matches count.
    """

    stores_scores: ClassVar[bool] = True

    other: Nested

    other_: Predictor = field(init=False)
    medians_: dict[str, dict[str, float]] = field(init=False)

    _LEVELS: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("task", "accelerator", "variant", "triton", "count"),
        ("task", "accelerator", "variant", "triton"),
        ("task", "accelerator", "variant"),
        ("task", "accelerator"),
    )

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        y = pd.DataFrame(np.exp(log_y), columns=list(self.targets_))
        self.other_ = self._construct_one(self.other).fit(X, y, columns=self.columns_, validation=validation)
        years = pd.Series(X[_YEAR].to_numpy() if _YEAR in X else np.zeros(len(X)))
        self.medians_ = {}
        for target, rows, logs in zip(self.targets_, measured_rows(log_y, self.targets_), log_y.T, strict=True):
            medians = self.medians_[target] = {}
            for level in self._levels(X):
                keys = _join(X, level)
                last = rows & (years == years.where(rows).groupby(keys).transform("max")).to_numpy()
                of_key = pd.Series(logs[last]).groupby(keys[last]).median()
                medians |= {str(key): float(median) for key, median in of_key.items()}

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for level in self._levels(X):
            keys = _join(X, level)
            known = [[self.medians_[target].get(key, np.nan) for target in self.targets_] for key in keys]
            logs = np.where(np.isnan(logs), np.array(known), logs)
        return np.where(np.isnan(logs), predict_logs(self.other_, X), logs) if np.isnan(logs).any() else logs

    def _levels(self, X: pd.DataFrame) -> list[tuple[str, ...]]:
        return [level for level in self._LEVELS if set(level) <= set(X.columns)]

    def _save(self, folder: Path) -> None:
        write_json(folder / "last_round.json", {"medians": self.medians_})
        save_nested(folder, {"other": self.other_})

    def _load(self, folder: Path) -> None:
        self.medians_ = read_state(folder / "last_round.json")["medians"]
        self.other_ = load_nested(folder, ["other"])["other"]


def _join(X: pd.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    """Return one text per row of its values in some columns, with their number: levels do not mix."""
    joined = np.full(len(X), str(len(names)), dtype=object)
    for name in names:
        joined = joined + "\x1f" + X[name].astype(object).where(X[name].notna(), "").astype(str).to_numpy(object)
    return joined
