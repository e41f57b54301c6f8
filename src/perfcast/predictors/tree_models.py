"""Base of forests and boosted trees: one model per target and large task, and a shared one for small tasks."""

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
from perfcast.predictors.task_rows import measured_rows, select_models, task_groups, task_labels
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state


@dataclass(kw_only=True, eq=False, repr=False)
class TreesPredictor(Predictor):
    """Trees on log targets: a model per target and task of at least `min_samples_per_task` rows.

    Smaller tasks share a model of all rows, which has the task as a feature.
    Shapes of the abstract methods: encoded (n, columns) as `TreeEncoder` gives them, log_y (n,).
    """

    suffix: ClassVar[str]
    """Suffix of the file of a model."""
    impute: ClassVar[bool] = False
    """Whether the encoder fills in missing values."""

    n_estimators: int = 100
    min_samples_per_task: int = 500
    n_jobs: int = 1
    random_state: int = 0

    encoder_: TreeEncoder = field(init=False)
    groups_: list[list[str]] = field(init=False)
    """Names of the models of every target, as `task_groups` gives them."""
    models_: list[list[Any]] = field(init=False)

    @abstractmethod
    def _fit_model(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, validation: np.ndarray) -> Any:
        """Return the model of some rows as its file gives it back. Shapes: rows and validation (n,) bool."""

    @abstractmethod
    def _predict_model(self, model: Any, encoded: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _write(self, model: Any, path: Path) -> None: ...

    @abstractmethod
    def _read(self, path: Path) -> Any: ...

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.encoder_ = TreeEncoder(impute=self.impute).fit(X, feature_columns(self.columns_, task=True))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        self.groups_, self.models_ = [], []
        for index, rows in enumerate(measured_rows(log_y, self.targets_)):
            groups = task_groups(tasks, rows, self.min_samples_per_task)
            self.groups_.append(list(groups))
            models = [self._fit_model(encoded, log_y[:, index], group, validation) for group in groups.values()]
            self.models_.append(models)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            used = [self.models_[index][number] for number in select_models(task, self.groups_[index])]
            logs[rows, index] = np.mean([self._predict_model(model, encoded[rows]) for model in used], axis=0)
        return logs

    def _path(self, folder: Path, target: int, model: int) -> Path:
        return folder / f"model_{target}_{model}{self.suffix}"

    def _save(self, folder: Path) -> None:
        write_json(folder / "trees.json", {"encoder": self.encoder_.to_state(), "groups": self.groups_})
        for target, models in enumerate(self.models_):
            for number, model in enumerate(models):
                self._write(model, self._path(folder, target, number))

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "trees.json")
        self.encoder_ = TreeEncoder.from_state(state["encoder"], feature_columns(self.columns_, task=True))
        self.groups_ = state["groups"]
        self.models_ = [
            [self._read(self._path(folder, target, number)) for number in range(len(names))]
            for target, names in enumerate(self.groups_)
        ]
