"""The last published result of the same task and accelerator, else other predictors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.accelerators.predictors.distance import join
from perfcast.predictors.factory import Composite, Nested, load_nested, save_nested
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.predictors.task_rows import measured_rows
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_YEAR = "year"


@dataclass(kw_only=True, eq=False, repr=False)
class LastRoundPredictor(Composite):
    """Median of the last round that has the task and the accelerator, else the mean of `others`.

    Of the rows of that round, those alike in all the columns of the first level that matches count. The median weighs
    `share`, the first of the others the rest. In the mean, the later ones are at most `limit` (natural logarithm) from
    the first: a regression by task explodes where a task has few accelerators.
    """

    others: Mapping[str, Nested]
    share: float = 1.0
    limit: float = 0.5

    others_: dict[str, Predictor] = field(init=False)
    medians_: dict[str, dict[str, float]] = field(init=False)

    _LEVELS: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("task", "accelerator", "variant", "triton", "count"),
        ("task", "accelerator", "variant", "triton"),
        ("task", "accelerator", "variant"),
        ("task", "accelerator"),
    )

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        y = pd.DataFrame(np.exp(log_y), columns=list(self.targets_))
        self.others_ = {
            name: other.fit(X, y, columns=self.columns_, validation=validation)
            for name, other in self._construct(self.others).items()
        }
        years = pd.Series(X[_YEAR].to_numpy() if _YEAR in X else np.zeros(len(X)))
        self.medians_ = {}
        for target, rows, logs in zip(
            self.targets_,
            measured_rows(log_y, self.targets_),
            log_y.T,
            strict=True,
        ):
            medians = self.medians_[target] = {}
            for level in self._levels(X):
                keys = f"{len(level)} " + join(X, level)  # levels do not mix
                last = rows & (years == years.where(rows).groupby(keys).transform("max")).to_numpy()
                of_key = pd.Series(logs[last]).groupby(keys[last]).median()
                medians |= {str(key): float(median) for key, median in of_key.items()}

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for level in self._levels(X):
            keys = f"{len(level)} " + join(X, level)  # levels do not mix
            known = [[self.medians_[target].get(key, np.nan) for target in self.targets_] for key in keys]
            logs = np.where(np.isnan(logs), np.array(known), logs)
        first, *later = (predict_logs(other, X) for other in self.others_.values())
        near = [np.clip(each, first - self.limit, first + self.limit) for each in later]
        mean = np.mean([first, *near], axis=0)
        return np.where(np.isnan(logs), mean, self.share * logs + (1 - self.share) * first)

    def _levels(self, X: pd.DataFrame) -> list[tuple[str, ...]]:
        return [level for level in self._LEVELS if set(level) <= set(X.columns)]

    def _save(self, folder: Path) -> None:
        write_json(
            folder / "last_round.json",
            {"medians": self.medians_, "others": list(self.others_)},
        )
        save_nested(folder, self.others_)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "last_round.json")
        self.medians_ = state["medians"]
        self.others_ = load_nested(folder, state["others"])
