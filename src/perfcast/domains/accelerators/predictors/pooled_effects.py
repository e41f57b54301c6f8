"""Throughput as a sum of effects that share strength: tasks, peaks, generations, accelerators, software over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.domains import read_table
from perfcast.domains.accelerators.predictors.distance import join
from perfcast.features.encoding.columns import numbers
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import measured_rows
from perfcast.schema.table import Column, Kind, Role

ONE = "one"
PEAKS = "peaks"
COUNT = "count"
AGE = "age"
DRIFT = "drift"
HOST = "host"
"""What an effect multiplies: 1, the peaks and the bandwidth, the number of accelerators, the ages of task and
accelerator, a random walk over the years, and the cores of the host."""


class Effect(NamedTuple):
    """Effect: the columns whose values have one each, what it multiplies, and its standard deviation (logarithm)."""

    columns: tuple[str, ...]
    multiplied: str
    deviation: float


def _read_effects() -> dict[str, Effect]:
    effects = {}
    for row in read_table(__package__, "effects.csv"):
        columns = tuple(row["columns"].split())
        effects[row["effect"]] = Effect(columns, row["multiplied"], float(row["deviation"]))
    return effects


EFFECTS = _read_effects()
"""Effects by name.

The deviations start from the largest marginal likelihood of the rounds before v4.1, and were then chosen on the
backtests v3.1, v4.0 and v5.0. Software has no effect: v5.0 does not state it."""
NOISE = 0.08
"""Standard deviation of the results of one system."""
Sums = dict[str, list[float]]
"""Value of the columns of an effect -> coefficients of what it multiplies."""
_NUMBERS = (
    "log_low_tflops",
    "log_half_tflops",
    "log_bandwidth",
    "log_count",
    "task_age",
    "accelerator_age",
)
_FRESH_YEARS = 0.75
_MIN_WEIGHT = 0.05
_ROBUST = 3.0
"""Errors beyond so many standard deviations of the noise weigh less."""
_ITERATIONS = 3
_TOLERANCE = 1e-6
"""Of the equations' solution: effects of a row change by about 1e-5 with a smaller one."""


@dataclass(kw_only=True, eq=False, repr=False)
class PooledEffectsPredictor(Predictor):
    """log y = sum of effects, each normal around 0 with a variance of its own: partial pooling.

    What nobody measured has an effect of 0, so a new accelerator has the level of its generation, a new generation that
    of its peaks, and a known pair of task and accelerator its own, the last rounds first. The effects are the best
    linear unbiased predictions; rows far off weigh less. A column that a dataset lacks has no effect.

    Source: Henderson, 1975, Best Linear Unbiased Estimation and Prediction under a Selection Model, Biometrics 31(2).
    """

    centers_: dict[str, float] = field(init=False)
    levels_: dict[str, float] = field(init=False)
    times_: list[float] = field(init=False)
    sums_: dict[str, dict[str, Sums]] = field(init=False)
    """Target -> effect -> coefficients."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        self.centers_ = {name: _known_median(self._number(X, name)) for name in _NUMBERS}
        self.times_ = np.unique(self._years(X)).tolist()
        self.levels_ = {}
        self.sums_ = {}
        for target, rows, logs in zip(
            self.targets_,
            measured_rows(log_y, self.targets_),
            log_y.T,
            strict=True,
        ):
            self.levels_[target] = float(np.median(logs[rows]))
            self.sums_[target] = self._fit_effects(X[rows], logs[rows] - self.levels_[target])

    def _fit_effects(self, X: pd.DataFrame, residual: np.ndarray) -> dict[str, Sums]:
        """Return the coefficients of the effects that explain a residual, (n,).

        The covariance of the rows is design @ design.T + noise, and is never made: conjugate gradients multiply by it.
        """
        # a prediction does without these imports
        from scipy.sparse import csr_array, hstack
        from scipy.sparse.linalg import LinearOperator, cg

        bases = self._bases(X)
        size = len(X)
        keys = {}
        halves = {}
        designs = []
        for name, (columns, multiplied, deviation) in EFFECTS.items():
            codes, keys[name] = pd.factorize(join(X, columns))
            halves[name] = half = deviation * self._half(multiplied)
            places = codes[:, None] * len(half) + np.arange(len(half))
            rows = np.repeat(np.arange(size), len(half))
            of_effect = ((bases[multiplied] @ half).ravel(), (rows, places.ravel()))
            designs.append(csr_array(of_effect, shape=(size, len(keys[name]) * len(half))))
        design = hstack(designs, format="csr")
        design.eliminate_zeros()
        turned = design.T.tocsr()
        weights = np.ones(size)
        solved = np.zeros(size)
        for _ in range(_ITERATIONS):
            noise = NOISE**2 / weights
            covariance = LinearOperator(
                (size, size),
                lambda v, n=noise: design @ (turned @ v) + n * v,
                dtype=float,
            )
            solved = cg(covariance, residual, x0=solved, rtol=_TOLERANCE)[0]
            far = np.abs(noise * solved) / NOISE  # what the effects leave over
            weights = np.clip(_ROBUST / np.maximum(far, 1e-9), _MIN_WEIGHT, 1.0)
        ends = np.cumsum([each.shape[1] for each in designs])[:-1]
        parts = zip(halves.items(), np.split(turned @ solved, ends), strict=True)
        return {
            name: dict(
                zip(
                    map(str, keys[name]),
                    (part.reshape(-1, len(half)) @ half.T).tolist(),
                    strict=True,
                )
            )
            for (name, half), part in parts
            if name not in ("block", "run")
        }

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = np.empty((len(X), len(self.targets_)))
        bases = self._bases(X)
        for place, target in enumerate(self.targets_):
            logs[:, place] = self.levels_[target]
            for name, sums in self.sums_[target].items():
                columns, multiplied, _ = EFFECTS[name]
                basis = bases[multiplied]
                keys, places = np.unique(join(X, columns), return_inverse=True)
                none = [0.0] * basis.shape[1]
                known = np.array([sums.get(key, none) for key in keys])
                logs[:, place] += (basis * known[places]).sum(axis=1)
        return logs

    def _bases(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return what effects multiply, (n, terms) each."""
        of = {name: np.nan_to_num(self._number(X, name) - center) for name, center in self.centers_.items()}
        ages = []
        for name in _NUMBERS[4:]:
            age = np.maximum(of[name] + self.centers_[name], 0.0)
            ages.append(np.exp(-age / _FRESH_YEARS))
        # a random walk: between training rounds and after the last one, that of the round before
        places = np.searchsorted(np.array(self.times_), self._years(X), side="right") - 1
        walk = np.eye(len(self.times_))[np.maximum(places, 0)]
        return {
            ONE: np.ones((len(X), 1)),
            PEAKS: np.column_stack([of[name] for name in _NUMBERS[:3]]),
            COUNT: of["log_count"][:, None],
            HOST: np.nan_to_num(self._number(X, "log_host_cores"))[:, None],
            AGE: np.column_stack(ages),
            DRIFT: walk,
        }

    def _half(self, multiplied: str) -> np.ndarray:
        """Return a root of the covariance of the coefficients of what effects multiply, (terms, terms)."""
        if multiplied != DRIFT:
            return np.eye({PEAKS: 3, AGE: 2}.get(multiplied, 1))
        times = np.array(self.times_) - self.times_[0] + 1.0
        return np.linalg.cholesky(np.minimum(times[:, None], times[None, :]))

    def _years(self, X: pd.DataFrame) -> np.ndarray:
        """Return the year of every row; a missing one is later than all."""
        return np.asarray(np.round(np.nan_to_num(self._number(X, "year"), nan=9999.0), 2))

    def _number(self, X: pd.DataFrame, name: str) -> np.ndarray:
        column = Column(name, Kind.NUMERICAL, Role.FEATURE, "")
        return numbers(X, column) if name in X else np.full(len(X), np.nan)


def _known_median(values: np.ndarray) -> float:
    return float(np.nanmedian(values)) if not np.isnan(values).all() else 0.0
