"""Observational scaling law: abilities as sigmoids of the principal components of common benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import number_matrix
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.predictors.scaling.compute_sigmoid import ComputeSigmoidPredictor
from perfcast.predictors.scaling.trained_runs import ACCURACY, ALL, known_medians, quantity_columns, read_runs
from perfcast.predictors.task_rows import measured_rows
from perfcast.schema.table import Column, Kind, Role, select
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

GROUP = "benchmark"
"""Feature group of the scores in common benchmarks."""
ERROR_SCALE = 0.05
"""Error of a share above which the loss is linear."""

_STEPS = 100
_MIN_SHARE = 1e-4
_MIN_ROWS = 4


@dataclass(kw_only=True, eq=False, repr=False)
class ObservationalLawPredictor(Predictor):
    """share = c + (1 - c) sigmoid(b_0 + b . s); s: first principal components of a model's scores in benchmarks.

    c is the share of a random choice. Components are those of the training models; a missing score is imputed by them.
    Another kind of result is a power: ln y = b_0 + b . s. `alpha` penalizes b, in units of the spread of s. A model
    without any benchmark, and a table without columns of the group `benchmark`, gets `compute_sigmoid`.
    Source: Ruan, Maddison and Hashimoto, Observational Scaling Laws, 2024, arXiv 2405.10938, sections 3 and 4; the
    imputation by components after Josse and Husson, 2016, Journal of Statistical Software 70.
    """

    reads_tags_only: ClassVar[bool] = True

    n_components: int = 3
    alpha: float = 0.01

    center_: list[float] = field(init=False)
    components_: list[list[float]] = field(init=False)
    """(components, benchmarks), scaled so that training scores have a spread of 1; empty without benchmarks."""
    fits_: dict[str, dict[str, dict[str, Any]]] = field(init=False)
    """Law by target and task."""
    fallback_: Predictor = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured = measured_rows(log_y, self.targets_)
        y = pd.DataFrame(np.exp(log_y), index=X.index, columns=list(self.targets_))
        self.fallback_ = ComputeSigmoidPredictor().fit(X, y, columns=self.columns_)
        self.center_, self.components_, self.fits_ = [], [], {}
        scores = self._benchmarks(X)
        distinct = np.unique(scores[np.isfinite(scores).any(axis=1)], axis=0) if scores.size else scores
        if len(distinct) < _MIN_ROWS or not quantity_columns(self.columns_):
            return
        center, components = _principal_components(distinct, self.n_components)
        self.center_, self.components_ = center.tolist(), components.tolist()
        places, known = self._places(scores)
        runs = read_runs(X, self.columns_, known_medians(X, quantity_columns(self.columns_)))
        for index, (target, rows) in enumerate(zip(self.targets_, measured, strict=True)):
            values, groups = np.exp(log_y[:, index]), runs.groups(rows & known)
            self.fits_[target] = {
                name: _fit_law(places[of], values[of], _kind(runs.kinds[of]), runs.chance[of], self.alpha)
                for name, of in groups.items()
                if of.sum() >= _MIN_ROWS
            }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs: np.ndarray = np.log(self.fallback_.predict(X).to_numpy(dtype=float))
        if not self.components_:
            return logs
        places, known = self._places(self._benchmarks(X))
        runs = read_runs(X, self.columns_, [1.0, 1.0])
        for index, target in enumerate(self.targets_):
            fits = self.fits_[target]
            for (task, _, kind), rows in runs.names():
                name = next((name for name in (task, ALL + kind) if name in fits), None)
                chosen = rows[known[rows]]
                if name is not None and len(chosen):
                    logs[chosen, index] = _evaluate(fits[name], places[chosen])
        return logs

    def _benchmark_columns(self) -> list[Column]:
        return list(select(self.columns_, role=Role.FEATURE, kind=Kind.NUMERICAL, group=GROUP))

    def _benchmarks(self, X: pd.DataFrame) -> np.ndarray:
        """Return the scores of every row in common benchmarks, (n, benchmarks), NaN where not measured."""
        return np.asarray(number_matrix(X, self._benchmark_columns()), dtype=float)

    def _places(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the components of the scores, (n, components), and whether a row has any score, (n,)."""
        components, center = np.asarray(self.components_), np.asarray(self.center_)
        known = np.isfinite(scores).any(axis=1)
        centered = scores - center
        places = np.zeros((len(scores), len(components)))
        patterns, pattern = np.unique(np.isfinite(scores), axis=0, return_inverse=True)
        for number, measured in enumerate(patterns):
            rows = pattern.ravel() == number
            if measured.any():
                # least squares on the measured scores, drawn to the mean model by one unit of noise
                basis = components[:, measured]
                gram = basis @ basis.T + 1e-6 * np.eye(len(components))
                places[rows] = np.linalg.solve(gram, basis @ centered[rows][:, measured].T).T
        return places, known

    def _save(self, folder: Path) -> None:
        state = {"center": self.center_, "components": self.components_, "fits": self.fits_}
        write_json(folder / "observational_law.json", state)
        self.fallback_.save(folder / "fallback")

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "observational_law.json")
        self.center_, self.components_, self.fits_ = state["center"], state["components"], state["fits"]
        self.fallback_ = load_predictor(folder / "fallback")


def _principal_components(scores: np.ndarray, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the center and the scaled components of scores with missing ones.

    Shapes: scores (n, benchmarks) -> (benchmarks,), (components, benchmarks).
    """
    missing = ~np.isfinite(scores)
    means = np.nanmean(np.where(missing.all(axis=0), 0.0, scores), axis=0)
    filled = np.where(missing, means, scores)
    count = min(n_components, len(scores) - 1, scores.shape[1])
    for _ in range(_STEPS if missing.any() else 1):
        center = filled.mean(axis=0)
        left, sizes, right = np.linalg.svd(filled - center, full_matrices=False)
        low_rank = center + (left[:, :count] * sizes[:count]) @ right[:count]
        filled = np.where(missing, low_rank, scores)
    used = sizes[:count] > 1e-9 * max(sizes[0], 1e-12)
    spread = sizes[:count][used] / np.sqrt(len(scores))
    rows = right[:count][used]
    rows *= np.sign(rows.sum(axis=1) + 1e-12)[:, None]  # more of a component is a better model
    return center, rows * spread[:, None]


def _kind(kinds: np.ndarray) -> str:
    names = np.unique(kinds.astype(str))
    return str(names[0]) if len(names) == 1 else ""


def _fit_law(places: np.ndarray, values: np.ndarray, kind: str, chance: np.ndarray, alpha: float) -> dict[str, Any]:
    """Fit one law by robust least squares. Shapes: places (n, components), values and chance (n,)."""
    design = np.column_stack([np.ones(len(places)), places])
    penalty = np.sqrt(alpha * len(places)) * np.eye(design.shape[1])[1:]
    floor = float(np.median(chance)) if kind == ACCURACY else 0.0

    def ridge(goal: np.ndarray, weights: np.ndarray) -> np.ndarray:
        root = np.sqrt(weights)[:, None]
        stacked = np.vstack([design * root, penalty])
        aims = np.concatenate([goal * root[:, 0], np.zeros(len(penalty))])
        solved: np.ndarray = np.linalg.lstsq(stacked, aims, rcond=None)[0]
        return solved

    if kind != ACCURACY:
        return {"kind": kind, "chance": 0.0, "weights": ridge(np.log(values), np.ones(len(values))).tolist()}
    from scipy.optimize import least_squares

    share = np.clip((values - floor) / (1 - floor), 0.01, 0.99)
    start = ridge(np.log(share / (1 - share)), np.ones(len(values)))

    def residuals(theta: np.ndarray) -> np.ndarray:
        predicted = floor + (1 - floor) / (1 + np.exp(-np.clip(design @ theta, -30, 30)))
        return np.concatenate([(predicted - values) / ERROR_SCALE, penalty @ theta])

    fitted = least_squares(residuals, start, loss="soft_l1", max_nfev=200).x
    return {"kind": kind, "chance": floor, "weights": fitted.tolist()}


def _evaluate(state: dict[str, Any], places: np.ndarray) -> np.ndarray:
    """Return the natural logarithms of the results that a law predicts, (n,)."""
    weights = np.asarray(state["weights"], dtype=float)
    score = weights[0] + places @ weights[1:]
    if state["kind"] != ACCURACY:
        return np.asarray(score)
    share = state["chance"] + (1 - state["chance"]) / (1 + np.exp(-np.clip(score, -30, 30)))
    return np.asarray(np.log(np.clip(share, _MIN_SHARE, 1 - _MIN_SHARE)))
