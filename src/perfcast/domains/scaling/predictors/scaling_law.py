"""Base of the scaling laws: a law per task and training set, and a plain model for tables that are no training runs."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from perfcast.domains.scaling.predictors.law_fit import PowerSum, fit_power_sums
from perfcast.domains.scaling.predictors.trained_runs import (
    ACCURACY,
    ALL,
    TrainedRuns,
    candidates_of,
    known_medians,
    quantity_columns,
    read_runs,
)
from perfcast.predictors.baselines import PowerLawPredictor
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.predictors.task_rows import measured_rows
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

LawState = dict[str, Any]
"""Parameters of one law, as values of JSON."""


class RunGroup(NamedTuple):
    """Positions of the rows that share a law, (rows,), and their kind, "" for rows of several kinds."""

    rows: np.ndarray
    kind: str


_MIN_SHARE = 1e-4
"""Smallest and, from 1, largest predicted share of correct answers."""
_POOLED = "plain"


@dataclass(kw_only=True, eq=False, repr=False)
class ScalingLawPredictor(Predictor):
    """Law in parameters and tokens of training runs, fitted to each task and, of several, each training set.

    A task or training set that training did not have gets the law of its task, else that of all tasks of its kind. A
    table without the columns `params` and `tokens` gets the baseline `power_law`. Where the runs do not identify a law,
    it is marked in `unidentified_`, and a warning counts them.
    """

    reads_tags_only: ClassVar[bool] = True

    medians_: list[float] = field(init=False)
    """Of parameters and tokens in training; empty for a table without them."""
    fits_: dict[str, dict[str, LawState]] = field(init=False)
    """Parameters by target and name of the group."""
    plain_: PowerLawPredictor | None = field(init=False)
    only: frozenset[str] | None = field(default=None, init=False)
    """Names of the laws that a backtest reads, so that it fits no other; None fits all."""

    @property
    def unidentified_(self) -> list[str]:
        """List the tasks whose law the runs do not identify."""
        states = {name: state for fits in self.fits_.values() for name, state in fits.items()}
        return sorted(name for name, state in states.items() if not (name.startswith(ALL) or _is_identified(state)))

    @abstractmethod
    def _fit_laws(self, runs: TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]) -> list[LawState]:
        """Fit the law of each group of rows, all of them at once because hundreds of small fits take long."""

    @abstractmethod
    def _evaluate(
        self, fits: dict[str, LawState], name: str, runs: TrainedRuns, rows: np.ndarray, kind: str
    ) -> np.ndarray:
        """Return the values that the law of that name predicts for some rows, (rows,)."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured = measured_rows(log_y, self.targets_)
        columns = quantity_columns(self.columns_)
        self.medians_, self.fits_, self.plain_ = known_medians(X, columns), {}, None
        if not columns:
            y = pd.DataFrame(np.exp(log_y), index=X.index, columns=list(self.targets_))
            self.plain_ = PowerLawPredictor().fit(X, y, columns=self.columns_)
            return
        runs = read_runs(X, self.columns_, self.medians_)
        for index, (target, rows) in enumerate(zip(self.targets_, measured, strict=True)):
            values = np.exp(log_y[:, index])
            groups = {
                name: RunGroup(np.flatnonzero(members), _kind_of(runs, members))
                for name, members in runs.groups(rows).items()
                if self.only is None or name in self.only
            }
            states = self._fit_laws(runs, values, list(groups.values()))
            self.fits_[target] = {
                name: {**state, "kind": group.kind} for (name, group), state in zip(groups.items(), states, strict=True)
            }
        if self.unidentified_:
            few = ", ".join(name.replace("\x1f", " ").strip() for name in self.unidentified_[:3])
            warnings.warn(
                f"{len(self.unidentified_)} laws are not identified by their runs and have published exponents: {few}",
                stacklevel=2,
            )

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        if self.plain_ is not None:
            return np.asarray(np.log(self.plain_.predict(X).to_numpy(dtype=float)))
        runs = read_runs(X, self.columns_, self.medians_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, target in enumerate(self.targets_):
            fits = self.fits_[target]
            for (task, identity, kind), rows in runs.names():
                name = next(name for name in candidates_of(task, identity, kind) if name in fits)
                # a described run may name its task alone, so the kind is that of the law
                fitted_kind = fits[name]["kind"]
                values = self._evaluate(fits, name, runs, rows, fitted_kind)
                most = 1 - _MIN_SHARE if fitted_kind == ACCURACY else np.inf
                logs[rows, index] = np.log(np.clip(values, _MIN_SHARE, most))
        return logs

    def _save(self, folder: Path) -> None:
        write_json(folder / "laws.json", {"medians": self.medians_, "fits": self.fits_})
        if self.plain_ is not None:
            self.plain_.save(folder / _POOLED)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "laws.json")
        self.medians_, self.fits_, self.plain_ = state["medians"], state["fits"], None
        if not self.medians_:
            plain = load_predictor(folder / _POOLED)
            assert isinstance(plain, PowerLawPredictor)
            self.plain_ = plain


def fit_values(runs: TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup], *, tied: bool) -> list[PowerSum]:
    """Fit the power sums of losses, or of the error rate of accuracies."""
    run_sets = [(runs.logs[group.rows], _reduce(values[group.rows], group.kind)) for group in groups]
    return fit_power_sums(run_sets, tied=tied)


def _reduce(values: np.ndarray, kind: str) -> np.ndarray:
    return np.maximum(1 - values, _MIN_SHARE) if kind == ACCURACY else values


def evaluate_power_sum(state: LawState, logs: np.ndarray, kind: str) -> np.ndarray:
    """Return the losses of a power sum, or the accuracies of that of an error rate."""
    values = PowerSum.from_state(state).evaluate(logs)
    return 1 - values if kind == ACCURACY else values


def _is_identified(state: LawState) -> bool:
    return all(bool(part.get("identified", True)) for part in (state, *filter(_is_state, state.values())))


def _is_state(value: Any) -> bool:
    return isinstance(value, dict)


def _kind_of(runs: TrainedRuns, rows: np.ndarray) -> str:
    kinds = np.unique(runs.kinds[rows].astype(str))
    return str(kinds[0]) if len(kinds) == 1 else ""
