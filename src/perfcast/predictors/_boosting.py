"""What gradient-boosted trees share: models per task, rounds chosen on the rows set aside, a file per model."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perfcast.encoding.dense import TreeEncoder, feature_columns
from perfcast.io import read_json, write_json
from perfcast.predictors._rows import answering, choice_split, measured_rows, task_groups, task_labels
from perfcast.predictors.base import Predictor


class BoostingPredictor(Predictor):
    """Boosted trees on log targets.

    One booster per target and task of at least `task_rows` rows; smaller tasks share a booster of all rows in which the
    task is a feature. The number of rounds is the best on the `valid` rows, at most `rounds` and stopped `patience`
    rounds after the best one; the booster is then fitted to all training rows with that number. Without `valid` rows it
    is `rounds`.

    A subclass implements the five methods below with a library's booster; `_suffix` is that of its files.
    Shapes: encoded (n, columns) as `TreeEncoder` gives them, log_y (n,).
    """

    _suffix: ClassVar[str]

    rounds: int
    patience: int
    task_rows: int

    encoder_: TreeEncoder
    models_: list[list[str]]
    boosters_: list[list[Any]]

    @abstractmethod
    def _best_rounds(
        self, encoded: np.ndarray, log_y: np.ndarray, held_out: np.ndarray, held_out_log_y: np.ndarray
    ) -> int:
        """Return the number of rounds with the smallest mean absolute log error on the rows held out."""

    @abstractmethod
    def _train(self, encoded: np.ndarray, log_y: np.ndarray, rounds: int) -> Any:
        """Return a booster as its file gives it back, so that a loaded model cannot differ."""

    @abstractmethod
    def _forecast(self, booster: Any, encoded: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _write(self, booster: Any, path: Path) -> None: ...

    @abstractmethod
    def _read(self, path: Path) -> Any: ...

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        self.encoder_ = TreeEncoder().fit(X, feature_columns(self.columns_, task=True))
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        self.models_, self.boosters_ = [], []
        for index, rows in enumerate(measured_rows(log_y, self.targets_)):
            groups = task_groups(tasks, rows, self.task_rows)
            self.models_.append(list(groups))
            self.boosters_.append([self._boost(encoded, log_y[:, index], group, valid) for group in groups.values()])

    def _boost(self, encoded: np.ndarray, log_y: np.ndarray, rows: np.ndarray, valid: np.ndarray) -> Any:
        rounds, parts = self.rounds, choice_split(rows, valid)
        if parts is not None:
            fitting, choosing = parts
            best = self._best_rounds(encoded[fitting], log_y[fitting], encoded[choosing], log_y[choosing])
            rounds = max(1, best)
        return self._train(encoded[rows], log_y[rows], rounds)

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        encoded, tasks = self.encoder_.transform(X), task_labels(X, self.columns_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, task, rows in self._questions(tasks):
            boosters = self.boosters_[index]
            used = answering(task, self.models_[index])
            logs[rows, index] = np.mean([self._forecast(boosters[model], encoded[rows]) for model in used], axis=0)
        return logs

    def _path(self, folder: Path, target: int, model: int) -> Path:
        return folder / f"booster_{target}_{model}{self._suffix}"

    def _save(self, folder: Path) -> None:
        write_json(folder / "boosters.json", {"encoder": self.encoder_.to_state(), "models": self.models_})
        for target, boosters in enumerate(self.boosters_):
            for model, booster in enumerate(boosters):
                self._write(booster, self._path(folder, target, model))

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "boosters.json")
        self.encoder_ = TreeEncoder.from_state(state["encoder"], feature_columns(self.columns_, task=True))
        self.models_ = state["models"]
        self.boosters_ = [
            [self._read(self._path(folder, target, model)) for model in range(len(models))]
            for target, models in enumerate(self.models_)
        ]
