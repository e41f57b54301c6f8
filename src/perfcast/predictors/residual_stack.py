"""Structure and weighted learners of its residual: the hybrid predictors, whose components conf names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.features.encoding.columns import coded, feature_columns
from perfcast.predictors.factory import TARGET, Composite, Nested, load_nested, save_nested
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.predictors.task_rows import (
    POOLED,
    SMALL_TABLE,
    draw_rows,
    groups_of,
    joined_labels,
    measured_rows,
    task_labels,
)
from perfcast.schema.table import Column, Tag
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
_TIE = 1.02
"""Weights with errors within this factor of the smallest count as equal."""
_N_FOLDS = 3

Weights = dict[str, float]
"""Weight of every learner by name."""


@dataclass(kw_only=True)
class EqualWeights:
    """Weights of the learners of a `ResidualStack`: the same for all learners and rows.

    A subclass divides rows into groups and chooses the weights of each group on rows that the components were not
    fitted to. They are in steps of a quarter and sum to at most 1.
    """

    def fit(self, X: pd.DataFrame, columns: Sequence[Column]) -> None:
        """Learn what groups depend on from the rows that the components are fitted to."""

    def groups(self, X: pd.DataFrame, columns: Sequence[Column]) -> np.ndarray:
        """Return the group of every row, (n,) object; one without weights gets those of POOLED."""
        return np.full(len(X), POOLED, dtype=object)

    def choose(
        self, stack: ResidualStack, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray
    ) -> dict[str, Weights]:
        """Return the weights by group of rows."""
        return {POOLED: equal_weights(stack.learner_names)}

    def predict_structure(self, structure: Mapping[str, Predictor], X: pd.DataFrame) -> np.ndarray:
        """Return the mean of the analytical models, (n, targets)."""
        return np.asarray(np.mean([predict_logs(model, X) for model in structure.values()], axis=0))

    def to_state(self) -> dict[str, Any]:
        """Return what `fit` learned as values that JSON can hold."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over the values of `to_state`."""


@dataclass(kw_only=True)
class TaskWeights(EqualWeights):
    """Weights by task, with the smallest mean absolute percentage errors over inner folds.

    The folds are three by ENTITY, and the validation rows as one more. With `validation_only` the validation rows are
    the only fold, if there are any: they differ from the training rows as the test rows of the split do. With `shared`
    all tasks have the mean of their weights: one held-out family says little about each. Tables of fewer than 50 rows
    are not divided: the weight of the first learner is then 1.
    """

    validation_only: bool = False
    shared: bool = False

    def groups(self, X: pd.DataFrame, columns: Sequence[Column]) -> np.ndarray:
        """Return the task of every row."""
        return task_labels(X, columns)

    def choose(
        self, stack: ResidualStack, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray
    ) -> dict[str, Weights]:
        """Return the weights by task."""
        candidates = candidate_weights(stack.learner_names)
        folds = self._inner_folds(X, stack.columns_, validation) if len(X) >= SMALL_TABLE else ()
        rows = [np.empty(0, dtype=int)]
        errors = [np.empty((len(candidates), 0))]
        for testing in stack.backtest(X, log_y, ((~fold, fold) for fold in folds)):
            by_target = stack.candidate_errors(X[testing], log_y[testing], candidates)
            # A row without any target has no error; those of several targets are averaged.
            errors.append(np.array([pd.DataFrame(error).mean(axis=1).to_numpy() for error in by_target]))
            rows.append(np.flatnonzero(testing))
        tested = np.concatenate(rows)
        by_row = np.concatenate(errors, axis=1)
        chosen = {}
        for task, mask in groups_of(task_labels(X, stack.columns_), np.ones(len(X), dtype=bool)).items():
            of_task = by_row[:, mask[tested]]
            known = np.isfinite(of_task).any()
            chosen[task] = average_best(candidates, np.nanmean(of_task, axis=1)) if known else candidates[-1]
        if not self.shared:
            return chosen
        tasks = [weights for task, weights in chosen.items() if task != POOLED] or [chosen[POOLED]]
        return dict.fromkeys(chosen, _mean_weights(tasks))

    def _inner_folds(self, X: pd.DataFrame, columns: Sequence[Column], validation: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the rows that each inner fold holds out, (n,) bool."""
        validates = validation.any() and not validation.all()
        if not (validates and self.validation_only):
            tagged = [column for column in columns if Tag.ENTITY in column.tags]
            labels = joined_labels(X, tagged) if tagged else np.arange(len(X)).astype(str).astype(object)
            labels = np.where(pd.isna(labels), "", labels).astype(str)
            names, positions = np.unique(labels, return_inverse=True)
            fold = (np.random.default_rng(0).permutation(len(names)) % _N_FOLDS)[positions]
            yield from (fold == number for number in range(min(_N_FOLDS, len(names))) if len(names) > 1)
        if validates:
            yield validation


@dataclass(kw_only=True, eq=False, repr=False)
class ResidualStack(Composite):
    """log y = structure + sum of weight x learner of the residual.

    The structure is the mean of analytical models, which extrapolate to entities unlike the training rows. The learners
    fit repeated deviations from it. `structure` and `learners` name both; `weights_by` names the class that divides
    rows into groups and chooses the weights of each group, by default `EqualWeights`.

    Residuals (natural logarithms) are clipped at `max_residual`, or at `residual_medians` medians of them where that is
    larger: such residuals are errors of the table or disturbed measurements. None clips nothing. With
    `max_samples_per_task`, rows with equal features are first replaced by their median, because repetitions add no
    information, and so many rows are drawn of a task with more: a grid of sizes has near-copies.

    The learning curve is that of the first learner that has one.

    Source: stacking (Breiman, 1996, Machine Learning 24) of regressions on the residual of a fixed structure.
    """

    structure: Mapping[str, Nested | None]
    learners: Mapping[str, Nested | None]
    weights_by: Nested | None = None
    max_residual: float | None = 0.3
    residual_medians: float = 0.0
    max_samples_per_task: int | None = None

    structure_: dict[str, Predictor] = field(init=False)
    learners_: dict[str, Predictor] = field(init=False)
    weights_: dict[str, Weights] = field(init=False)
    """By group of rows."""
    weighting_: EqualWeights = field(init=False)

    @property
    def learner_names(self) -> list[str]:
        """The names of the learners."""
        return [name for name, conf in self.learners.items() if conf is not None]

    @property
    def training_dates(self) -> pd.DatetimeIndex | None:
        """The publication dates of the training rows during a fit."""
        return self._when

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        if self.max_samples_per_task is not None:
            X, log_y, validation = self._draw(X, log_y, validation, self.max_samples_per_task)
        measured_rows(log_y, self.targets_)
        X = coded(X)
        self.weighting_ = _weighting(self.weights_by)
        self.weights_ = self.weighting_.choose(self, X, log_y, validation)
        vars(self).pop("backtested", None)  # which only the choice of weights needs
        self._fit_components(X, log_y, np.ones(len(X), dtype=bool))

    def _draw(
        self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray, limit: int
    ) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """Merge rows with equal features and draw rows of large tasks, see the class."""
        names = [column.name for column in feature_columns(self.columns_, task=True)]
        if names:
            group = X.groupby(names, dropna=False, sort=False, observed=True).ngroup().to_numpy()
            _, first = np.unique(group, return_index=True)
            X = X.iloc[first]
            self._when = None if self._when is None else self._when[first]
            log_y = pd.DataFrame(log_y).groupby(group).median().to_numpy()
            validation = pd.Series(validation).groupby(group).any().to_numpy()
        drawn = draw_rows(task_labels(X, self.columns_), limit)
        if len(drawn) == len(X):
            return X, log_y, validation
        self._when = None if self._when is None else self._when[drawn]
        return X.iloc[drawn], log_y[drawn], validation[drawn]

    def _fit_components(self, X: pd.DataFrame, log_y: np.ndarray, rows: np.ndarray) -> None:
        """Fit structure and learners to some rows.

        They get no validation rows. Otherwise the final components would differ from those that the weights were chosen
        for. Analytical models that chose their hyperparameters were no better beside learners (backtests before 2023).
        """
        X = X[rows]
        log_y = log_y[rows]
        when = None if self._when is None else pd.Series(self._when[rows])

        def fit(predictor: Predictor, logs: np.ndarray) -> Predictor:
            y = pd.DataFrame(np.exp(logs), columns=list(self.targets_))
            return predictor.fit(X, y, columns=self.columns_, when=when)

        self.weighting_.fit(X, self.columns_)
        self.structure_ = {name: fit(model, log_y) for name, model in self._construct(self.structure).items()}
        residual = log_y - self.weighting_.predict_structure(self.structure_, X)
        if self.max_residual is not None:
            limit = max(self.max_residual, self.residual_medians * float(np.nanmedian(np.abs(residual))))
            residual = np.clip(residual, -limit, limit)
        self.learners_ = {name: fit(learner, residual) for name, learner in self._construct(self.learners).items()}

    def backtest(
        self, X: pd.DataFrame, log_y: np.ndarray, pairs: Iterable[tuple[np.ndarray, np.ndarray]]
    ) -> Iterator[np.ndarray]:
        """Fit the components to the first rows of every pair and yield the second; skip pairs without targets.

        Components that are fitted to these rows already are not fitted again.
        """
        for fitting, testing in pairs:
            if (~np.isnan(log_y[fitting])).any(axis=0).all() and not np.isnan(log_y[testing]).all():
                same: Any = (self.backtested or {}).get(X.index[fitting].to_numpy().tobytes())
                if same is None:
                    self._fit_components(X, log_y, fitting)
                else:
                    self.weighting_.load_state(same.weighting_.to_state())
                    self.structure_ = same.structure_
                    self.learners_ = same.learners_
                yield testing

    def candidate_errors(
        self, X: pd.DataFrame, log_y: np.ndarray, candidates: Iterable[Weights]
    ) -> Iterator[np.ndarray]:
        """Yield the absolute relative errors under each candidate, (n, targets), NaN where not measured."""
        structure = self.weighting_.predict_structure(self.structure_, X)
        residuals = {name: predict_logs(learner, X) for name, learner in self.learners_.items()}
        for weights in candidates:
            logs = structure + sum(weights[name] * residual for name, residual in residuals.items())
            yield np.abs(np.expm1(logs - log_y))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        X = coded(X)
        groups = self.weighting_.groups(X, self.columns_)
        weights = [self.weights_[group if group in self.weights_ else POOLED] for group in groups.tolist()]
        logs = self.weighting_.predict_structure(self.structure_, X)
        for name, learner in self.learners_.items():
            weight = np.array([of_group[name] for of_group in weights])[:, None]
            if weight.any():
                logs = logs + weight * predict_logs(learner, X)
        return logs

    @property
    def history_(self) -> list[dict[str, float]]:
        """The learning curve of the first learner that has one, one entry per epoch.

        Raises: AttributeError when there is none, so that `hasattr` tells.
        """
        for learner in self.learners_.values():
            if hasattr(learner, "history_"):
                history: list[dict[str, float]] = learner.history_
                return history
        raise AttributeError("no learner of this predictor has history_")

    def _save(self, folder: Path) -> None:
        state = {
            "weights": self.weights_,
            "weighting": self.weighting_.to_state(),
            "structure": list(self.structure_),
            "learners": list(self.learners_),
        }
        write_json(folder / "weights.json", state)
        save_nested(folder, {**self.structure_, **self.learners_})

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "weights.json")
        self.weights_, self.weighting_ = state["weights"], _weighting(self.weights_by)
        self.weighting_.load_state(state["weighting"])
        self.structure_ = load_nested(folder, state["structure"])
        self.learners_ = load_nested(folder, state["learners"])


def _weighting(conf: Nested | None) -> EqualWeights:
    """Construct the weights that conf names. Raises: UserError for another class."""
    if not conf:
        return EqualWeights()
    where = "_target_ in weights_by"
    loaded = plugins.load_class(str(conf.get(TARGET)), where)
    if not issubclass(loaded, EqualWeights):
        raise UserError(f"{where} must be a subclass of {__name__}.EqualWeights", f"{conf.get(TARGET)!r} is none")
    return loaded(**{name: value for name, value in conf.items() if name != TARGET})


def equal_weights(names: Sequence[str]) -> Weights:
    """Return the weights of the mean of all learners."""
    return dict.fromkeys(names, 1.0 / len(names))


def candidate_weights(names: Sequence[str]) -> list[Weights]:
    """Return all weights in steps of a quarter that sum to at most 1."""
    steps = (values for values in product(_STEPS, repeat=len(names)) if sum(values) <= 1)
    return [dict(zip(names, values, strict=True)) for values in steps]


def average_best(candidates: Sequence[Weights], errors: np.ndarray) -> Weights:
    """Return the mean of the candidates with nearly the smallest error, (candidates,).

    Few releases cannot separate neighboring weights, and a mean avoids an extreme choice by chance.
    """
    best = [weights for weights, error in zip(candidates, errors, strict=True) if error <= _TIE * errors.min()]
    return _mean_weights(best)


def _mean_weights(candidates: Sequence[Weights]) -> Weights:
    return {name: float(np.mean([weights[name] for weights in candidates])) for name in candidates[0]}
