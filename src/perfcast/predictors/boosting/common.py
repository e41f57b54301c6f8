"""Base of the gradient-boosted trees: boosters per task, with a number of trees chosen on validation rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import feature_columns
from perfcast.features.encoding.dense import TreeEncoder
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import (
    SMALL_TABLE,
    choice_split,
    measured_rows,
    select_models,
    task_groups,
    task_labels,
)
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state


@dataclass(kw_only=True, eq=False, repr=False)
class BoostingPredictor(Predictor):
    """Boosted trees on log targets.

    Fit one booster per target and task of at least `min_samples_per_task` rows. Smaller tasks share a booster of all
    rows, which has the task as a feature. The number of trees is the best one on the validation rows, at most
    `n_estimators`; the search stops `early_stopping_rounds` after the best one. The booster is then fitted to all
    training rows with that number. Without validation rows, or with 0 rounds, it has `n_estimators` trees. Fewer than
    50 rows are learned without sampling of rows and without `reg_lambda`. A fit is deterministic for a given `n_jobs`.

    A subclass implements the abstract methods with the estimator of a library.
    Shapes: encoded (n, columns) as `TreeEncoder` gives them, log_y (n,).
    """

    suffix: ClassVar[str]
    """Suffix of the file of a booster."""

    n_estimators: int = 1000
    early_stopping_rounds: int = 50
    learning_rate: float = 0.1
    subsample: float = 0.8
    reg_lambda: float = 1.0
    min_samples_per_task: int = 500
    n_jobs: int = 1
    random_state: int = 0

    encoder_: TreeEncoder = field(init=False)
    models_: list[list[str]] = field(init=False)
    """Names of the boosters of every target, as `task_groups` gives them."""
    boosters_: list[list[Any]] = field(init=False)

    @abstractmethod
    def _best_n_estimators(
        self, encoded: np.ndarray, log_y: np.ndarray, encoded_validation: np.ndarray, log_y_validation: np.ndarray
    ) -> int:
        """Return the number of trees with the smallest mean absolute log error on the validation rows."""

    @abstractmethod
    def _fit_booster(self, encoded: np.ndarray, log_y: np.ndarray, n_estimators: int) -> Any:
        """Return a booster as its file gives it back, so that a loaded model cannot differ."""

    @abstractmethod
    def _predict_booster(self, booster: Any, encoded: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _write(self, booster: Any, path: Path) -> None: ...

    @abstractmethod
    def _read(self, path: Path) -> Any: ...

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.encoder_ = TreeEncoder().fit(X, feature_columns(self.columns_, task=True))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        self.models_, self.boosters_ = [], []
        for index, rows in enumerate(measured_rows(log_y, self.targets_)):
            groups = task_groups(tasks, rows, self.min_samples_per_task)
            self.models_.append(list(groups))
            self.boosters_.append(
                [self._boost(encoded, log_y[:, index], group, validation) for group in groups.values()]
            )

    def _boost(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, validation: np.ndarray) -> Any:
        n_estimators = self.n_estimators
        split = choice_split(rows, validation) if self.early_stopping_rounds else None
        if split is not None:
            fitting, choosing = split
            best = self._best_n_estimators(encoded[fitting], log_y[fitting], encoded[choosing], log_y[choosing])
            n_estimators = max(1, best)
        return self._fit_booster(encoded[rows], log_y[rows], n_estimators)

    def _regularization(self, rows: int) -> dict[str, float]:
        """Return the row sampling and the penalty for a training part of so many rows."""
        if rows < SMALL_TABLE:
            return {"subsample": 1.0, "reg_lambda": 0.0}
        return {"subsample": self.subsample, "reg_lambda": self.reg_lambda}

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            boosters = self.boosters_[index]
            used = select_models(task, self.models_[index])
            predictions = [self._predict_booster(boosters[model], encoded[rows]) for model in used]
            logs[rows, index] = np.mean(predictions, axis=0)
        return logs

    def _path(self, folder: Path, target: int, model: int) -> Path:
        return folder / f"booster_{target}_{model}{self.suffix}"

    def _save(self, folder: Path) -> None:
        write_json(folder / "boosters.json", {"encoder": self.encoder_.to_state(), "models": self.models_})
        for target, boosters in enumerate(self.boosters_):
            for model, booster in enumerate(boosters):
                self._write(booster, self._path(folder, target, model))

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "boosters.json")
        self.encoder_ = TreeEncoder.from_state(state["encoder"], feature_columns(self.columns_, task=True))
        self.models_ = state["models"]
        self.boosters_ = [
            [self._read(self._path(folder, target, model)) for model in range(len(models))]
            for target, models in enumerate(self.models_)
        ]
