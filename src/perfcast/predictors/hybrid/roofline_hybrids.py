"""`roofline_trees`: the roofline law, and extremely randomized trees on what it leaves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import coded, feature_columns
from perfcast.predictors.analytical.roofline import RooflinePredictor
from perfcast.predictors.linear import Ridge
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.neural.residual_attention import ResidualAttention
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.predictors.task_rows import POOLED, SMALL_TABLE, groups_of, joined_labels, measured_rows, task_labels
from perfcast.predictors.trees import ExtraTrees
from perfcast.schema.table import Tag
from perfcast.utils.io import read_json, write_json

FAR = 0.3
"""A residual (logarithm) beyond this and beyond `_TIMES` the usual one is of a disturbed row: learned as this much."""
_TIMES = 4.0
_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
_ALIKE = 1.02
"""Weights whose errors are within this factor of the smallest are not told apart."""
_FOLDS = 3


class RooflineHybridPredictor(Predictor):
    """log y = log roofline law + weight x learner of the residual.

    The law carries the forecast to sizes unlike any in training. Rows that no predictor can tell apart are first
    brought to their median: many repetitions of a case teach no more than one. For every task the weight is the mean of
    those (in steps of a quarter) with nearly the smallest mean absolute percentage error over inner folds by ENTITY,
    and over the `validation` rows as one more fold; where a learner only repeats what it has seen, they say so. Fewer than
    50 rows are not divided: the learner then counts in full.
    Source: stacking (Breiman, 1996, Machine Learning 24) on the residual of a fixed structure.
    """

    law_: RooflinePredictor
    learner_: Predictor
    weights_: dict[str, float]
    """By task; POOLED for a task never seen."""

    @abstractmethod
    def _learner(self) -> Predictor:
        """Return the unfitted learner of the residual."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        rows, log_y, validation = self._alike(X, log_y, validation)
        X = coded(X.iloc[rows])
        tasks = task_labels(X, self.columns_)
        errors: list[tuple[np.ndarray, np.ndarray]] = []
        for held in self._held(X, validation) if len(X) >= SMALL_TABLE else ():
            if (~np.isnan(log_y[~held])).any(axis=0).all() and not np.isnan(log_y[held]).all():
                self._fit_parts(X[~held], log_y[~held])
                errors.append((np.flatnonzero(held), self._errors(X[held], log_y[held])))
        everything = np.ones(len(X), dtype=bool)
        self.weights_ = {name: _weight(errors, group) for name, group in groups_of(tasks, everything).items()}
        self._fit_parts(X, log_y)

    def _alike(
        self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the first row of each group of equal features, the medians of its scores, and whether it is valid."""
        names = [column.name for column in feature_columns(self.columns_, task=True)]
        group = X.groupby(names, dropna=False, sort=False, observed=True).ngroup().to_numpy() if names else None
        if group is None:
            return np.arange(len(X)), log_y, validation
        _, first = np.unique(group, return_index=True)
        medians = pd.DataFrame(log_y).groupby(group).median().to_numpy()
        return first, medians, pd.Series(validation).groupby(group).any().to_numpy()

    def _held(self, X: pd.DataFrame, validation: np.ndarray) -> Iterator[np.ndarray]:
        """Give the rows that each inner fold holds out. Shapes: (n,) bool."""
        tagged = [column for column in self.columns_ if Tag.ENTITY in column.tags]
        entity = joined_labels(X, tagged) if tagged else np.arange(len(X)).astype(str).astype(object)
        names = np.unique(np.where(pd.isna(entity), "", entity).astype(str))
        dealt = dict(zip(names, np.random.default_rng(0).permutation(len(names)) % _FOLDS, strict=True))
        fold = np.array([dealt["" if name is None else str(name)] for name in entity])
        yield from (fold == number for number in range(min(_FOLDS, len(names))) if len(names) > 1)
        if validation.any() and not validation.all():
            yield validation

    def _fit_parts(self, X: pd.DataFrame, log_y: np.ndarray) -> None:
        def fitted(predictor: Predictor, logs: np.ndarray) -> Predictor:
            return predictor.fit(X, pd.DataFrame(np.exp(logs), columns=list(self.targets_)), columns=self.columns_)

        law = fitted(RooflinePredictor(), log_y)
        assert isinstance(law, RooflinePredictor)
        self.law_ = law
        rest = log_y - _logs(law, X)
        far = max(FAR, _TIMES * float(np.nanmedian(np.abs(rest))))
        self.learner_ = fitted(self._learner(), np.clip(rest, -far, far))

    def _errors(self, X: pd.DataFrame, log_y: np.ndarray) -> np.ndarray:
        """Return the absolute relative error of every weight. Shapes: (weights, rows), targets averaged."""
        law, rest = _logs(self.law_, X), _logs(self.learner_, X)
        found = [np.abs(np.expm1(law + weight * rest - log_y)) for weight in _STEPS]
        # a row without any score has no error; those of several targets are averaged
        return np.array([pd.DataFrame(one).mean(axis=1).to_numpy() for one in found])

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        X = coded(X)
        tasks = task_labels(X, self.columns_)
        weight = np.array([self.weights_.get(str(task), self.weights_[POOLED]) for task in tasks])[:, None]
        rest = _logs(self.learner_, X) if weight.any() else 0.0
        return np.asarray(_logs(self.law_, X) + weight * rest)

    def _save(self, folder: Path) -> None:
        write_json(folder / "weights.json", self.weights_)
        self.law_.save(folder / "analytical")
        self.learner_.save(folder / "learner")

    def _load(self, folder: Path) -> None:
        self.weights_ = read_json(folder / "weights.json")
        law = load_predictor(folder / "analytical")
        assert isinstance(law, RooflinePredictor)
        self.law_, self.learner_ = law, load_predictor(folder / "learner")


def _logs(predictor: Predictor, X: pd.DataFrame) -> np.ndarray:
    logs: np.ndarray = np.log(predictor.predict(X).to_numpy(dtype=float))
    return logs


def _weight(errors: list[tuple[np.ndarray, np.ndarray]], group: np.ndarray) -> float:
    """Return the mean of the weights nearly as good as the best one on the rows of a group; 1 without rows."""
    own = [error[:, group[rows]] for rows, error in errors]
    together = np.concatenate(own, axis=1) if own else np.empty((len(_STEPS), 0))
    if not np.isfinite(together).any():
        return 1.0
    means = np.nanmean(together, axis=1)
    return float(np.mean([step for step, mean in zip(_STEPS, means, strict=True) if mean <= _ALIKE * means.min()]))


class RooflineAttentionPredictor(ResidualAttention, RooflineHybridPredictor):
    """The roofline law, corrected by a group-attention network.

    Physics anchors the forecast; group attention comes from NCPP (arXiv 2407.03385). `history_` is the learning curve
    of the final network.
    """

    def __init__(
        self,
        *,
        epochs: int = 12,
        least_steps: int = 300,
        width: int = 16,
        group_width: int = 64,
        inter_blocks: int = 1,
        learning_rate: float = 2e-3,
        dropout: float = 0.0,
        grouped: bool = True,
        linear_skip: bool = False,
        random_state: int = 0,
    ) -> None:
        self.epochs, self.least_steps = epochs, least_steps
        self.width, self.group_width, self.inter_blocks = width, group_width, inter_blocks
        self.learning_rate, self.dropout = learning_rate, dropout
        self.grouped, self.linear_skip = grouped, linear_skip
        self.random_state = random_state

    def _learner(self) -> Predictor:
        return self._new_network(linear_skip=self.linear_skip)

    @property
    def _network(self) -> GroupPoolingPredictor:
        return cast(GroupPoolingPredictor, self.learner_)


class RooflineRidgePredictor(RooflineHybridPredictor):
    """The roofline law, corrected by a linear model of the columns: the plain form of `roofline_attention`."""

    def __init__(self, *, alpha: float = 1e-2, min_count: int = 2, clip: float = 0.25) -> None:
        self.alpha, self.min_count, self.clip = alpha, min_count, clip

    def _learner(self) -> Predictor:
        return Ridge(default_alpha=self.alpha, min_count=self.min_count, clip=self.clip)


class RooflineTreesPredictor(RooflineHybridPredictor):
    """The roofline law, corrected by extremely randomized trees."""

    def __init__(
        self, *, trees: int = 100, feature_fraction: float = 0.5, leaf_rows: int = 1, random_state: int = 0
    ) -> None:
        self.trees, self.feature_fraction, self.leaf_rows = trees, feature_fraction, leaf_rows
        self.random_state = random_state

    def _learner(self) -> Predictor:
        return ExtraTrees(
            n_estimators=self.trees,
            max_features=self.feature_fraction,
            min_samples_leaf=self.leaf_rows,
            random_state=self.random_state,
        )
