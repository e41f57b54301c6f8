"""`analytical`: announced gains with fixed coefficients, and physical terms around them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.predictors.analytical.terms import AnalyticalTerms
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, fitted_by_group, groups_of, measured_rows, task_labels
from perfcast.uncertainty.backtest import backtest_pairs
from perfcast.utils.io import read_json, write_json

_ROUNDS = 3
_ALIKE = 1.02
"""Settings whose errors in backtests are within this factor of the smallest are not told apart: the default stays."""

_FAR = 2.0
"""Residuals beyond this many robust standard deviations count less: Huber's weights."""


@dataclass(frozen=True)
class Part:
    """Some of the training rows. Shapes: tasks (n,), log_y (n, targets), when (n,), NaT where unknown."""

    X: pd.DataFrame
    tasks: np.ndarray
    log_y: np.ndarray
    when: pd.DatetimeIndex

    def where(self, rows: np.ndarray) -> Part:
        return Part(self.X[rows], self.tasks[rows], self.log_y[rows], self.when[rows])


class LawBase(Predictor):
    """log y = structure + constant + sum of weight x term, the weights by robust ridge regression for every task.

    A law fits in seconds and is read off its weights (`weights_`: target, task, term). `strengths` of the penalty and
    `memories` (years after which a row counts 1/e; 0 forgets nothing) are chosen together by the mean absolute
    percentage error over the backtests of the question (`_backtests.py`), and are `default_strength` and
    `default_memory` without `validation` rows and where no other setting is clearly better: a few launches tell little.
    Announcements count up to the last training row (`processors/cores.py`), none without `announced`. A task never
    seen gets the law of all rows.
    """

    strengths: Sequence[float]
    default_strength: float
    memories: Sequence[float]
    default_memory: float
    announced: bool

    terms_: AnalyticalTerms
    chosen_: dict[str, float]
    structure_: Any
    _weights: dict[str, dict[str, np.ndarray]]

    @abstractmethod
    def _fit_structure(self, part: Part, terms: AnalyticalTerms) -> Any:
        """Learn the structure: values that JSON can hold."""

    @abstractmethod
    def _structure(self, X: pd.DataFrame, tasks: np.ndarray, terms: AnalyticalTerms, state: Any) -> np.ndarray:
        """Return the structure's part of the log targets, (n, targets)."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        when = self._when if self._when is not None else pd.DatetimeIndex([pd.NaT] * len(X))
        everything = Part(X, task_labels(X, self.columns_), log_y, when)
        strength, memory = self._choose(everything, backtest_pairs(validation, self._when))
        self.chosen_ = {"strength": strength, "memory": memory}
        self.terms_, self.structure_, fitted = self._prepare(everything)
        self._weights = fitted(strength, memory)

    def _prepare(self, part: Part) -> tuple[AnalyticalTerms, Any, Any]:
        """Fit terms and structure; return them and a function of strength and memory that fits the weights."""
        last = part.when.max()
        age = np.nan_to_num(((last - part.when).days / 365.25).to_numpy(dtype=float))
        terms = AnalyticalTerms()
        as_of = None if pd.isna(last) else last
        matrix = terms.fit_transform(part.X, self.columns_, as_of, announced=self.announced)
        structure = self._fit_structure(part, terms)
        rest = part.log_y - self._structure(part.X, part.tasks, terms, structure)

        def fitted(strength: float, memory: float, pooled: bool = True) -> dict[str, dict[str, np.ndarray]]:
            weight = np.exp(-age / memory) if memory else np.ones(len(age))
            penalties = strength * terms.penalties_

            def solve(index: int, rows: np.ndarray) -> np.ndarray:
                return robust_ridge(matrix[rows], rest[rows, index], weight[rows], penalties)

            return {
                target: fitted_by_group(groups_of(part.tasks, ~np.isnan(rest[:, index]), pooled), partial(solve, index))
                for index, target in enumerate(self.targets_)
            }

        return terms, structure, fitted

    def _choose(self, part: Part, pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
        settings = list(product(self.strengths, self.memories))
        errors = [self._errors(part.where(fitting), part.where(choosing), settings) for fitting, choosing in pairs]
        measured = [one for one in errors if one is not None]
        if not measured:
            return self.default_strength, self.default_memory
        means = np.mean(measured, axis=0)
        default = (self.default_strength, self.default_memory)
        best = int(np.argmin(means))
        if default in settings and means[settings.index(default)] <= _ALIKE * means[best]:
            return default
        return settings[best]

    def _errors(self, fitting: Part, choosing: Part, settings: list[tuple[float, float]]) -> list[float] | None:
        """Return the error of every setting in one backtest; None where it cannot be held."""
        if not (~np.isnan(fitting.log_y)).any(axis=0).all() or np.isnan(choosing.log_y).all():
            return None
        terms, structure, fitted = self._prepare(fitting)
        matrix = terms.transform(choosing.X)
        base = self._structure(choosing.X, choosing.tasks, terms, structure)
        # the law of all rows costs as much as those of the tasks together, and only what is new asks for it
        pooled = not all(
            (~np.isnan(fitting.log_y[fitting.tasks == task, index])).any()
            for index, task, _ in self._outputs(choosing.tasks)
        )

        def error(strength: float, memory: float) -> float:
            forecast = base + self._linear(matrix, choosing.tasks, fitted(strength, memory, pooled))
            return float(np.nanmean(np.abs(np.expm1(forecast - choosing.log_y))))

        return [error(*setting) for setting in settings]

    def _linear(self, matrix: np.ndarray, tasks: np.ndarray, weights: dict[str, dict[str, np.ndarray]]) -> np.ndarray:
        forecast = np.full((len(matrix), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            own = weights[self.targets_[index]]
            used = own[task if task in own else POOLED]
            # a row's sum in a fixed order: a matrix product may round differently for one row than for many
            forecast[rows, index] = used[0] + (matrix[rows] * used[1:]).sum(axis=1)
        return forecast

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        tasks = task_labels(X, self.columns_)
        base = self._structure(X, tasks, self.terms_, self.structure_)
        forecast: np.ndarray = base + self._linear(self.terms_.transform(X), tasks, self._weights)
        return forecast

    @property
    def weights_(self) -> dict[str, dict[str, dict[str, float]]]:
        """The fitted weights by target, task and term; the constant under ""."""
        names = ["", *self.terms_.names_]
        return {
            target: {task: dict(zip(names, map(float, values), strict=True)) for task, values in by_task.items()}
            for target, by_task in self._weights.items()
        }

    def _save(self, folder: Path) -> None:
        state = {"chosen": self.chosen_, "terms": self.terms_.to_state(), "structure": self.structure_}
        write_json(folder / "law.json", {**state, "weights": self.weights_})

    def _load(self, folder: Path) -> None:
        state = read_json(folder / "law.json")
        self.chosen_, self.structure_ = state["chosen"], state["structure"]
        self.terms_ = AnalyticalTerms.from_state(state["terms"], self.columns_)
        self._weights = {
            target: {
                task: np.array([values[name] for name in ("", *self.terms_.names_)]) for task, values in by.items()
            }
            for target, by in state["weights"].items()
        }


def robust_ridge(matrix: np.ndarray, values: np.ndarray, weight: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """Return the constant and the weights of a ridge regression whose far residuals count less.

    Shapes: matrix (n, p), values (n,), weight (n,), penalties (p,) -> (1 + p,).
    Source: iteratively reweighted least squares with the weights of Huber, 1964, Ann. Math. Stat. 35(1).
    """
    counted = weight
    scaled = np.empty_like(matrix)
    for _ in range(_ROUNDS):
        share = counted / counted.sum()
        center, constant = share @ matrix, float(share @ values)
        # centerd by its moments: the rows themselves are copied once and not three times
        np.multiply(matrix, np.sqrt(share)[:, None], out=scaled)
        gram = scaled.T @ scaled - np.outer(center, center)
        weights = np.linalg.solve(gram + np.diag(penalties), (share * (values - constant)) @ matrix)
        start = constant - center @ weights
        residual = values - start - matrix @ weights
        spread = 1.4826 * float(np.median(np.abs(residual))) + 1e-9
        counted = weight / np.maximum(1.0, np.abs(residual) / (_FAR * spread))
    return np.concatenate([[start], weights])


_PER_CLOCK_SHARE = 0.85
"""How much of an announced gain per clock shows in a score: a part of every run waits for memory. `analytical_time` has that
part as a term and takes the gain whole. Settled in backtests on results published before 2023 (Ice Lake and Milan from
2021-04, Genoa and Alder Lake in 2022): 0.8 to 0.9 were best and alike; the whole gain was 0.1 to 0.4 points behind."""


class AnalyticalPredictor(LawBase):
    """The logarithm of a score is what was announced of the core (`AnalyticalTerms.announced`) plus the law's terms.

    The coefficients of announcements are fixed: a handful of generations cannot teach them, and learned ones explode.
    The steps of cores and compilers correct it for generations that were measured; one that was not is its predecessor
    plus what its maker announced.
    """

    def __init__(
        self,
        *,
        strengths: Sequence[float] = (1e-4, 3e-4, 1e-3),
        default_strength: float = 3e-4,
        memories: Sequence[float] = (0.0, 3.0),
        default_memory: float = 3.0,
        announced: bool = True,
    ) -> None:
        self.strengths = strengths
        self.default_strength = default_strength
        self.memories = memories
        self.default_memory = default_memory
        self.announced = announced

    def _fit_structure(self, part: Part, terms: AnalyticalTerms) -> Any:
        return {}

    def _structure(self, X: pd.DataFrame, tasks: np.ndarray, terms: AnalyticalTerms, state: Any) -> np.ndarray:
        return np.repeat(terms.announced(X, _PER_CLOCK_SHARE)[:, None], len(self.targets_), axis=1)
