"""Intervals of forecasts from the residuals of rehearsed ones: conformal, scaled by how far a machine is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

LEVEL = 0.9
"""The level of an interval where none is asked for."""

TEST = -1
"""Stands for the test part where rehearsals have their number."""

_LEAST_ROWS = 50
"""Residuals of a task below which it shares those of all tasks."""

_GRID = np.linspace(0.0, 1.0, 201)
_BEYOND = 2.0
_FARTHEST = 0.99
"""Quantile at which residuals are cut off before their size is explained: a mistyped score explains nothing."""


def questions_of(tasks: pd.Series, targets: pd.Series | str) -> np.ndarray:
    """Return what every row asks for, its task and target, (n,) str: each has quantiles of its own."""
    joined: np.ndarray = (tasks.astype(str) + "\x1f" + targets).to_numpy()
    return joined


class Calibration:
    """Half-widths of intervals in logarithms: quantile of a task x typical error at a machine's distances.

    The typical error is a non-negative sum, base + weight x distance (`Support`), fitted to the absolute residuals of
    rehearsals, so what is farther away is never thought surer. Residuals over it are the conformal scores; a task's
    quantiles of them are those of all rehearsals, each of which counts the same however many rows it held: that is what
    makes an interval about the future expect the drift that earlier launches showed. A few launches do not tell which
    task drifts next: with several rehearsals no task's quantile is less than that of all tasks together.
    Far past the distances of the rehearsals the product loses its meaning: no half-width is more than `_BEYOND` times
    the largest residual of any rehearsal.
    Shapes: residuals (n,) log forecast - log measured; distances (n, names).
    Source: normalised split conformal regression (Papadopoulos et al., 2002; Lei et al., 2018, J. Am. Stat. Assoc.
    113), weighted by rehearsal (Barber et al., 2023, Ann. Stat. 51).
    """

    base: float
    weights: dict[str, float]
    quantiles: dict[str, list[float]]
    """By task, "" for all of them: the scores at the grid of 0, 0.5, ... 100 %."""
    most: float
    """The largest half-width."""

    def fit(self, residuals: np.ndarray, tasks: np.ndarray, rehearsals: np.ndarray, distances: pd.DataFrame) -> Self:
        """Learn from the residuals of rehearsed forecasts. Raises: ValueError when there are none."""
        from scipy.optimize import nnls  # forecasts, which import this module, need none of it

        if not len(residuals):
            raise ValueError("a calibration needs residuals of rehearsed forecasts")
        size = np.abs(np.asarray(residuals, dtype=float))
        share = 1 / pd.Series(rehearsals).groupby(np.asarray(rehearsals)).transform("size").to_numpy(dtype=float)
        explained = np.column_stack([np.ones(len(size)), distances.to_numpy(dtype=float)])
        root = np.sqrt(share)
        found, _ = nnls(explained * root[:, None], np.minimum(size, np.quantile(size, _FARTHEST)) * root)
        self.weights = dict(zip(map(str, distances.columns), map(float, found[1:]), strict=True))
        # errors at no distance at all are never quite nothing
        self.base = max(float(found[0]), 0.01 * float(size.mean()), 1e-9)
        self.most = max(_BEYOND * float(size.max()), self.base)
        scores = size / self.typical(distances)
        self.quantiles = {"": _quantiles(scores, share)}
        several = len(set(np.asarray(rehearsals).tolist())) > 1
        for task in sorted(set(map(str, tasks))):
            rows = np.asarray(tasks).astype(str) == task
            if rows.sum() >= _LEAST_ROWS:
                own = _quantiles(scores[rows], share[rows])
                self.quantiles[task] = (
                    [max(pair) for pair in zip(own, self.quantiles[""], strict=True)] if several else own
                )
        return self

    def typical(self, distances: pd.DataFrame) -> np.ndarray:
        """Return the typical absolute error in logarithms at the given distances, (n,)."""
        weights = np.array([self.weights[str(name)] for name in distances.columns])
        typical: np.ndarray = self.base + distances.to_numpy(dtype=float) @ weights
        return typical

    def support(self, distances: pd.DataFrame) -> np.ndarray:
        """Return how well machines are supported by what was seen, (n,), 1 to nearly 0.

        1: the like was seen. 0.25: at such a distance the errors of rehearsals were four times those at none.
        """
        return np.asarray(self.base / self.typical(distances), dtype=float)

    def unlike(self, distances: pd.DataFrame) -> pd.Series:
        """Return the name of the distance that takes most of the support, index as given, "" where nothing does."""
        shares = distances * pd.Series(self.weights).reindex(distances.columns)
        return shares.idxmax(axis=1).where(shares.max(axis=1) > 0, "")

    def half_widths(self, tasks: np.ndarray, distances: pd.DataFrame, level: float = LEVEL) -> np.ndarray:
        """Return the half-width in logarithms of the interval of a level, (n,): forecast x exp(+- half-width).

        Raises: ValueError when the level is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"a level must be between 0 and 1, however: {level}")
        found = {task: float(np.interp(level, _GRID, values)) for task, values in self.quantiles.items()}
        factors = np.array([found.get(str(task), found[""]) for task in tasks])
        return np.asarray(np.minimum(factors * self.typical(distances), self.most), dtype=float)

    def levels(self, tasks: np.ndarray, distances: pd.DataFrame, residuals: np.ndarray) -> np.ndarray:
        """Return the level of the narrowest interval that holds each residual, (n,), inf where none does.

        Were intervals perfect, these levels would be spread evenly from 0 to 1.
        """
        scores = np.abs(residuals) / self.typical(distances)
        reached = np.empty(len(scores))
        names = np.asarray([task if task in self.quantiles else "" for task in map(str, tasks)], dtype=object)
        for task in set(names):
            places = np.searchsorted(np.asarray(self.quantiles[task]), scores[names == task] * (1 - 1e-12))
            reached[names == task] = np.append(_GRID, np.inf)[places]
        return reached

    def to_state(self) -> dict[str, Any]:
        """Return what was learned as values that JSON can hold."""
        return {"base": self.base, "weights": self.weights, "quantiles": self.quantiles, "most": self.most}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild from `to_state()`."""
        found = cls()
        found.base, found.weights = float(state["base"]), dict(state["weights"])
        found.most = float(state["most"])
        found.quantiles = {task: list(values) for task, values in state["quantiles"].items()}
        return found


def _quantiles(scores: np.ndarray, share: np.ndarray) -> list[float]:
    """Return the weighted quantiles of the scores at the grid, corrected for their finite number.

    The new score is one more that may be larger than all of them: level x (n + 1) / n, at most the largest score.
    """
    order = np.argsort(scores, kind="stable")
    ordered, reached = scores[order], np.cumsum(share[order]) / share.sum()
    wanted = np.minimum(_GRID * (len(scores) + 1) / len(scores), 1.0)
    places = np.minimum(np.searchsorted(reached, wanted - 1e-12), len(ordered) - 1)
    return [float(value) for value in ordered[places]]
