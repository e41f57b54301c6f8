"""Analytical model of log targets: a fixed structure plus physical terms with fitted weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.servers.predictors.server_quantities import Quantities
from perfcast.domains.servers.predictors.terms import AnalyticalTerms
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, groups_of, measured_rows, task_labels
from perfcast.uncertainty.backtest import backtest_pairs
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_N_ITERATIONS = 3
_TIE = 1.02
"""Hyperparameters with backtest errors within this factor of the smallest count as equal: the default wins."""

_HUBER_DELTA = 2.0
"""Residuals beyond this many robust standard deviations get the smaller weights of Huber's loss."""

_PER_CLOCK_SHARE = 0.85
"""Share of an announced gain per clock that a score gains, because a part of every run waits for memory.

`analytical_time` has that part as a term and takes the whole gain. The share comes from backtests on results published
before 2023 (Ice Lake and Milan from 2021-04, Genoa and Alder Lake in 2022). Shares of 0.8 to 0.9 were best and equal;
the whole gain was 0.1 to 0.4 percentage points worse."""


class TaskWeights(dict[str, np.ndarray]):
    """Constant and weights of the terms, (1 + terms,), by task.

    Those of all rows, under POOLED, are fitted at first use: they cost as much as those of all tasks together, and
    only an unseen task and a saved model need them.
    """

    def __init__(self, groups: Mapping[str, np.ndarray], fit: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__({name: fit(rows) for name, rows in groups.items() if name != POOLED})
        self._rows = groups[POOLED]
        self._fit = fit

    def __missing__(self, name: str) -> np.ndarray:
        if name != POOLED:
            raise KeyError(name)
        # where all rows are of one task, its weights are also those of all rows
        self[POOLED] = next(iter(self.values())) if len(self) == 1 else self._fit(self._rows)
        return self[POOLED]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain dictionary, without the training rows."""
        return dict, ({**self, POOLED: self[POOLED]},)


Weights = dict[str, dict[str, np.ndarray]]
"""Constant and weights by target and task."""


@dataclass(frozen=True)
class TrainingRows:
    """A subset of the training rows. Shapes: tasks (n,), log_y (n, targets), when (n,), NaT where unknown."""

    X: pd.DataFrame
    tasks: np.ndarray
    log_y: np.ndarray
    when: pd.DatetimeIndex

    def select(self, mask: np.ndarray) -> TrainingRows:
        """Return the rows of a mask, (n,) bool."""
        return TrainingRows(
            self.X[mask],
            self.tasks[mask],
            self.log_y[mask],
            self.when[mask],
        )


@dataclass(frozen=True)
class TermRows:
    """Rows as analytical models with equal terms read them. Shapes: tasks (n,), matrix (n, terms)."""

    X: pd.DataFrame
    tasks: np.ndarray
    quantities: Quantities
    matrix: np.ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class BaseAnalyticalPredictor(Predictor):
    """log y = structure + constant + sum of weight x term, fitted by robust ridge regression for every task.

    `weights_` holds the weights by target, task and term. `alphas` are the candidate penalties. `decay_years` are the
    candidate decays of the sample weights: a row that old weighs 1/e, and 0 means no decay. The pair with the smallest
    mean absolute percentage error over the backtests is chosen. `default_alpha` and `default_decay_years` stand
    without validation rows and wherever no other pair is clearly better, because a backtest has few releases.
    Announced gains count up to the date of the last training row, and not at all without `announced_gains`. A task that
    training did not have gets the model of all rows.
    """

    reads_tags_only: ClassVar[bool] = True

    alphas: Sequence[float]
    default_alpha: float
    decay_years: Sequence[float] = (0.0, 3.0)
    default_decay_years: float = 3.0
    announced_gains: bool = True

    terms_: AnalyticalTerms = field(init=False)
    hyperparameters_: dict[str, float] = field(init=False)
    """Chosen alpha and decay_years."""
    structure_: Any = field(init=False)
    _weights: Weights = field(init=False)

    @abstractmethod
    def _fit_structure(self, training: TrainingRows, terms: AnalyticalTerms) -> Any:
        """Fit the structure. Returns: values that JSON can hold."""

    @abstractmethod
    def _apply_structure(
        self, X: pd.DataFrame, tasks: np.ndarray, quantities: Quantities, terms: AnalyticalTerms, state: Any
    ) -> np.ndarray:
        """Return the structure's share of the log targets, (n, targets); `quantities` are those of the rows."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        when = self._when if self._when is not None else pd.DatetimeIndex([pd.NaT] * len(X))
        training = TrainingRows(X, task_labels(X, self.columns_), log_y, when)
        alpha, decay_years = self._choose(training, backtest_pairs(validation, self._when))
        self.hyperparameters_ = {"alpha": alpha, "decay_years": decay_years}
        self.terms_, self.structure_, fit_weights = self._prepare(training)
        self._weights = fit_weights(alpha, decay_years)

    def _prepare(self, training: TrainingRows) -> tuple[AnalyticalTerms, Any, Any]:
        """Fit terms and structure. Returns: both, and a function of alpha and decay_years that fits the weights."""
        last = training.when.max()
        age = np.nan_to_num(((last - training.when).days / 365.25).to_numpy(dtype=float))
        terms = AnalyticalTerms()
        as_of = None if pd.isna(last) else last
        matrix = terms.fit_transform(training.X, self.columns_, as_of, announced_gains=self.announced_gains)
        structure = self._fit_structure(training, terms)
        quantities = terms.quantities.compute(training.X)
        residual = training.log_y - self._apply_structure(training.X, training.tasks, quantities, terms, structure)

        def fit_weights(alpha: float, decay_years: float) -> Weights:
            sample_weight = np.exp(-age / decay_years) if decay_years else np.ones(len(age))
            penalties = alpha * terms.penalties_

            def solve(index: int, rows: np.ndarray) -> np.ndarray:
                return robust_ridge(matrix[rows], residual[rows, index], sample_weight[rows], penalties)

            return {
                target: TaskWeights(groups_of(training.tasks, ~np.isnan(residual[:, index])), partial(solve, index))
                for index, target in enumerate(self.targets_)
            }

        return terms, structure, fit_weights

    def _choose(self, training: TrainingRows, pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
        """Return the alpha and the decay_years with the smallest mean error over the backtests."""
        candidates = list(product(self.alphas, self.decay_years))
        splits = [(training.select(fitting), training.select(testing)) for fitting, testing in pairs]
        backtests = [self._backtest(fitting, testing, candidates) for fitting, testing in splits]
        errors = [error for error in backtests if error is not None]
        default = (self.default_alpha, self.default_decay_years)
        if not errors:
            return default
        mean = np.mean(errors, axis=0)
        best = int(np.argmin(mean))
        if default in candidates and mean[candidates.index(default)] <= _TIE * mean[best]:
            return default
        return candidates[best]

    def _backtest(
        self, fitting: TrainingRows, testing: TrainingRows, candidates: list[tuple[float, float]]
    ) -> list[float] | None:
        """Return the error of every candidate in one backtest; None where a target has no measured rows."""
        if not (~np.isnan(fitting.log_y)).any(axis=0).all() or np.isnan(testing.log_y).all():
            return None
        terms, structure, fit_weights = self._prepare(fitting)
        quantities = terms.quantities.compute(testing.X)
        matrix = terms.transform(testing.X, quantities)
        base = self._apply_structure(testing.X, testing.tasks, quantities, terms, structure)

        def error(alpha: float, decay_years: float) -> float:
            logs = base + self._apply_weights(matrix, testing.tasks, fit_weights(alpha, decay_years))
            return float(np.nanmean(np.abs(np.expm1(logs - testing.log_y))))

        return [error(*candidate) for candidate in candidates]

    def _apply_weights(self, matrix: np.ndarray, tasks: np.ndarray, weights: Weights) -> np.ndarray:
        # A row's sum in a fixed order: a matrix product may round differently for one row than for many.
        return self._apply_models(
            tasks,
            weights,
            lambda each, rows: each[0] + (matrix[rows] * each[1:]).sum(axis=1),
        )

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.predict_rows(self.read_rows(X))

    def read_rows(self, X: pd.DataFrame) -> TermRows:
        """Return rows as `predict_rows` reads them, also that of another model with equal terms."""
        quantities = self.terms_.quantities.compute(X)
        return TermRows(X, task_labels(X, self.columns_), quantities, self.terms_.transform(X, quantities))

    def predict_rows(self, rows: TermRows) -> np.ndarray:
        """Return the natural logarithms of the predictions, (n, targets)."""
        base = self._apply_structure(rows.X, rows.tasks, rows.quantities, self.terms_, self.structure_)
        return np.asarray(base + self._apply_weights(rows.matrix, rows.tasks, self._weights))

    @property
    def weights_(self) -> dict[str, dict[str, dict[str, float]]]:
        """The fitted weights by target, task and term; the constant under ""."""
        names = ["", *self.terms_.names_]
        return {
            target: {
                task: dict(zip(names, map(float, values), strict=True))
                for task, values in {**by_task, POOLED: by_task[POOLED]}.items()
            }
            for target, by_task in self._weights.items()
        }

    def _save(self, folder: Path) -> None:
        state = {
            "hyperparameters": self.hyperparameters_,
            "terms": self.terms_.to_state(),
            "structure": self.structure_,
            "weights": self.weights_,
        }
        write_json(folder / "analytical.json", state)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "analytical.json")
        self.hyperparameters_ = state["hyperparameters"]
        self.structure_ = state["structure"]
        self.terms_ = AnalyticalTerms.from_state(state["terms"], self.columns_)
        names = ["", *self.terms_.names_]
        self._weights = {
            target: {task: np.array([values[name] for name in names]) for task, values in by_task.items()}
            for target, by_task in state["weights"].items()
        }


@dataclass(kw_only=True, eq=False, repr=False)
class AnalyticalPredictor(BaseAnalyticalPredictor):
    """log y = announced gains of the core (`AnalyticalTerms.core_gains`) plus the fitted terms.

    The coefficients of announced gains are fixed: training has only a few generations, and learned coefficients
    diverge. Steps of cores and compilers correct the gains for measured generations. An unmeasured core is its
    predecessor plus the gain that its vendor announced.
    """

    alphas: Sequence[float] = (1e-4, 3e-4, 1e-3)
    default_alpha: float = 3e-4

    def _fit_structure(self, training: TrainingRows, terms: AnalyticalTerms) -> Any:
        return {}

    def _apply_structure(
        self, X: pd.DataFrame, tasks: np.ndarray, quantities: Quantities, terms: AnalyticalTerms, state: Any
    ) -> np.ndarray:
        return np.repeat(terms.core_gains(X, _PER_CLOCK_SHARE)[:, None], len(self.targets_), axis=1)


def robust_ridge(
    matrix: np.ndarray, values: np.ndarray, sample_weight: np.ndarray, penalties: np.ndarray
) -> np.ndarray:
    """Return the constant and the weights of a ridge regression with Huber's loss.

    Shapes: matrix (n, p), values (n,), sample_weight (n,), penalties (p,) -> (1 + p,).
    Source: iteratively reweighted least squares with the weights of Huber, 1964, Ann. Math. Stat. 35(1).
    """
    robust_weight = sample_weight
    scaled = np.empty_like(matrix)
    for _ in range(_N_ITERATIONS):
        share = robust_weight / robust_weight.sum()
        center = share @ matrix
        constant = float(share @ values)
        # Centered by its moments, so that the rows are copied once and not three times.
        np.multiply(matrix, np.sqrt(share)[:, None], out=scaled)
        gram = scaled.T @ scaled - np.outer(center, center)
        weights = np.linalg.solve(gram + np.diag(penalties), (share * (values - constant)) @ matrix)
        intercept = constant - center @ weights
        residual = values - intercept - matrix @ weights
        spread = 1.4826 * float(np.median(np.abs(residual))) + 1e-9
        robust_weight = sample_weight / np.maximum(1.0, np.abs(residual) / (_HUBER_DELTA * spread))
    return np.concatenate([[intercept], weights])
