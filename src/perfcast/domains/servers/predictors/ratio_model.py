"""Gaussian model of the ratio of a score to an estimate from another benchmark suite, for few results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve

from perfcast.domains import read_table
from perfcast.features.encoding.columns import finite_range, named_numbers
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import POOLED, draw_rows, measured_rows, task_labels, task_medians
from perfcast.schema.table_files import read_parquet
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

KINDS = ("int speed", "fp speed", "int rate", "fp rate")
"""Values of the columns domain and metric."""
EFFECTS = {row["effect"]: [float(row[kind]) for kind in KINDS] for row in read_table(__package__, "ratio_effects.csv")}
"""Prior standard deviations of the effects by kind, in logarithms; see `RatioModelPredictor`."""
MEANS = {"compiler_steps": 0.055}
"""Prior means: new releases of compilers gained 5.5 % (standard deviation 4 %) in the first years of CPU2017."""
NOISE = [0.02, 0.035, 0.025, 0.02]
"""Standard deviations of the noise by kind."""
RATE_CORRELATION = 0.7
"""Correlation of the coefficients of two rate kinds; those of other kinds do not correlate."""
OUTSIDE = {"cores_outside": "cores_enabled_total", "memory_outside": "mem_gbps_per_core"}
"""Variables that are 0 inside the range of training, and the columns whose range it is."""
DEGREES_OF_FREEDOM = 4.0
"""Of the t distribution of the noise."""
MAX_SAMPLES = 500
"""Rows of a task that are learned."""
_REWEIGHTINGS = 2
_BLOCK = 500
"""Rows whose covariance is computed at once."""
_ESTIMATE = "estimate"
_PUBLISHED_LIMIT = 0.2
"""Largest logarithm of `published`: scores further apart are those of other machines."""
_RESIDUAL = "residual of "
_STATE = "ratio_model.json"
_ROWS = "rows.parquet"


@dataclass(frozen=True)
class _Rows:
    """Rows as the model reads them.

    Shapes: kinds (n, kinds) weights of the kinds of tasks; variables and labels (n,) by name, labels None where
    unknown; offset (n,) natural logarithms of the estimate.
    """

    kinds: np.ndarray
    variables: dict[str, np.ndarray]
    labels: dict[str, np.ndarray]
    offset: np.ndarray


@dataclass(frozen=True)
class _Posterior:
    """Training rows of a target, the factor of the covariance of their residuals, and the weights of their kernels."""

    rows: _Rows
    factor: Any
    weights: np.ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class RatioModelPredictor(Predictor):
    """ln score = ln estimate + median ratio of the task + sum of effects + noise, a Gaussian model.

    An effect is a coefficient of a variable: one for all rows, such as `log_cores`, or one for the rows of each label,
    such as `constant of cpu_model`; `a+b` is a joint label. `effects` has the prior standard deviation of the
    coefficient for each of the KINDS of tasks, `means` its prior mean where that is not 0; None takes EFFECTS and
    MEANS. These are hyperparameters: few results determine effects, but not how far each kind of effect varies.

    A kind is a value of the columns domain and metric, such as "int rate". The coefficients of two rate kinds
    correlate. A row of another kind has the mean effects of all kinds.

    The noise has a t distribution by kind, with the standard deviations `noise`; None takes NOISE. The effects and
    their posterior covariance are in closed form. So the interval of a prediction widens by what is unknown of its row:
    a new CPU model, core or compiler, or a CPU model without results behind its estimate. A row without an estimate has
    the median estimate of its task. A task has at most MAX_SAMPLES rows.

    Variables:
    - `constant`.
    - `log_cores`.
    - `chips_past_2`: doublings of the chips past two.
    - `efficiency`: logarithm of the estimate per clock, per core of a rate kind.
    - `compiler_steps`: releases of the compiler's vendor since the first in training.
    - `forecast`: 1 / root of 1 + results of the CPU model behind the estimate.
    - `forecast_efficiency`: the product of `forecast` and `efficiency`.
    - `published`: logarithm of the median published score of the CPU model and its chips, in the other suite, over the
      estimate. An estimate is for the set-up of the row, and may trust its difference too much.
    - `cores_outside` and `memory_outside`: how far the logarithms of the cores and of the memory bandwidth per core are
      outside the range of training. Training tells nothing of them: they move no prediction and widen its interval.

    Source: Gaussian processes with a sum of linear and label kernels (Rasmussen and Williams, 2006, equations 2.23 to
    2.26 and section 2.7); noise of the t distribution by weights (Lange et al., 1989, J. Am. Stat. Assoc. 84).
    """

    reads_tags_only: ClassVar[bool] = True

    estimate: str
    effects: Mapping[str, Sequence[float]] | None = None
    means: Mapping[str, float] | None = None
    noise: Sequence[float] | None = None

    medians_: dict[str, dict[str, float]] = field(init=False)
    """By task: median logarithm of the estimate, and by target of the ratio."""
    centers_: dict[str, list[float]] = field(init=False)
    """Median of every variable by kind."""
    versions_: dict[str, list[float]] = field(init=False)
    """Compiler versions in training by vendor."""
    ranges_: dict[str, list[float]] = field(init=False)
    """Smallest and largest logarithm in training, by the variables of OUTSIDE that training knows."""
    _training: pd.DataFrame = field(init=False)
    _residuals: np.ndarray = field(init=False)
    """Less medians and prior means, (rows, targets), NaN where not measured."""
    _posteriors: list[_Posterior] = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured_rows(log_y, self.targets_)
        drawn = draw_rows(task_labels(X, self.columns_), MAX_SAMPLES)
        X = X.iloc[drawn].reset_index(drop=True)
        log_y = log_y[drawn]
        tasks = task_labels(X, self.columns_)
        kinds = self._kinds(X)
        logs = self._logs(X, self.estimate)
        is_known = np.isfinite(logs)[:, None]
        logs = logs if is_known.any() else np.zeros(len(X))
        self.medians_ = task_medians(tasks, logs[:, None], [_ESTIMATE])
        vendors = self._join(X, "compiler_vendor")
        versions = named_numbers(X, self.columns_, "compiler_version")
        self.versions_ = {
            str(vendor): np.unique(versions[(vendors == vendor) & np.isfinite(versions)]).tolist()
            for vendor in pd.unique(vendors[~pd.isna(vendors)])
        }
        ranges = {name: finite_range(self._logs(X, column)) for name, column in OUTSIDE.items()}
        self.ranges_ = {name: known for name, known in ranges.items() if known}
        self.centers_ = {
            name: [_median(values[of_kind > 0]) for of_kind in kinds.T] for name, values in self._read(X).items()
        }
        rows = self._rows(X)
        residuals = log_y - (rows.offset + self._prior_means(rows))[:, None]
        has_both = np.isfinite(residuals) & is_known  # a target without a row of both is learned without estimates
        residuals = np.where(has_both | ~has_both.any(axis=0), residuals, np.nan)
        self.medians_ |= task_medians(tasks, residuals, self.targets_)
        self._training = X
        self._residuals = residuals - np.column_stack([self._by_task(target, tasks) for target in self.targets_])
        self._condition()

    def _condition(self) -> None:
        """Compute the posterior of the effects by target, with weights of the noise by what the effects leave."""
        self._posteriors = []
        for residual in self._residuals.T:
            used = np.isfinite(residual)
            rows = self._rows(self._training[used])
            values = residual[used]
            kernel = self._kernel(rows)
            noise = self._noise(rows)
            trust = np.ones(len(values))
            for step in range(_REWEIGHTINGS + 1):
                factor = cho_factor(kernel + np.diag(noise / trust), lower=True)
                weights = cho_solve(factor, values)
                if step < _REWEIGHTINGS:
                    left = noise / trust * weights
                    trust = (DEGREES_OF_FREEDOM + 1) / (DEGREES_OF_FREEDOM + left**2 / noise)
            self._posteriors.append(_Posterior(rows, factor, weights))

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        rows = self._rows(X)
        tasks = task_labels(X, self.columns_)
        base = rows.offset + self._prior_means(rows)
        logs = [
            base + self._by_task(target, tasks) + (self._kernel(rows, each.rows) * each.weights).sum(axis=1)
            for target, each in zip(self.targets_, self._posteriors, strict=True)
        ]
        return np.column_stack(logs)

    def covariance(self, X: pd.DataFrame, target: int = 0) -> np.ndarray:
        """Return the covariance of the errors of the log predictions of a target, noise included, (n, n)."""
        rows = self._rows(X)
        posterior = self._posteriors[target]
        cross = self._kernel(rows, posterior.rows)
        prior = self._kernel(rows) + np.diag(self._noise(rows))
        return np.asarray(prior - cross @ cho_solve(posterior.factor, cross.T))

    def predict_deviations(self, X: pd.DataFrame) -> np.ndarray:
        """Return the standard deviation of the error of every log prediction, (n, targets)."""
        if not len(X):
            return np.zeros((0, len(self.targets_)))
        blocks = [X.iloc[start : start + _BLOCK] for start in range(0, len(X), _BLOCK)]
        variances = [
            np.concatenate([np.diag(self.covariance(block, target)) for block in blocks])
            for target in range(len(self.targets_))
        ]
        return np.asarray(np.sqrt(np.column_stack(variances)))

    def _kernel(self, rows: _Rows, others: _Rows | None = None) -> np.ndarray:
        """Return the prior covariance of the sums of effects, (n, m); without `others` that of the rows themselves."""
        is_same = others is None
        others = others or rows
        is_rate = np.array([kind.endswith("rate") for kind in KINDS], dtype=float)
        correlation = np.eye(len(is_rate)) + RATE_CORRELATION * (np.outer(is_rate, is_rate) - np.diag(is_rate))
        kernel = np.zeros((len(rows.offset), len(others.offset)))
        for effect, deviations in self._effects.items():
            variable, _, label = effect.partition(" of ")
            left, right = (each.kinds * deviations * each.variables[variable][:, None] for each in (rows, others))
            shared = left @ correlation @ right.T
            if label:
                codes = pd.factorize(np.concatenate([rows.labels[label], others.labels[label]]))[0]
                first = codes[: len(left), None]
                second = codes[len(left) :]
                match = (first == second) & (first >= 0)
                if is_same:
                    np.fill_diagonal(match, True)
                shared *= match
            kernel += shared
        return kernel

    @property
    def _effects(self) -> Mapping[str, Sequence[float]]:
        return EFFECTS if self.effects is None else self.effects

    def _noise(self, rows: _Rows) -> np.ndarray:
        """Return the variance of the noise of every row, (n,)."""
        return np.asarray((rows.kinds @ (NOISE if self.noise is None else self.noise)) ** 2)

    def _prior_means(self, rows: _Rows) -> np.ndarray:
        return sum(
            (mean * rows.variables[name] for name, mean in (MEANS if self.means is None else self.means).items()),
            np.zeros(len(rows.offset)),
        )

    def _by_task(self, name: str, tasks: np.ndarray) -> np.ndarray:
        medians = self.medians_[name]
        return np.array([medians.get(task, medians[POOLED]) for task in tasks.tolist()])

    def _rows(self, X: pd.DataFrame) -> _Rows:
        kinds = self._kinds(X)
        variables = self._read(X)
        for name, values in variables.items():
            variables[name] = np.nan_to_num(values - kinds @ self.centers_[name])
        known = np.nan_to_num(named_numbers(X, self.columns_, self.estimate.replace(_ESTIMATE, "known")))
        variables |= {"constant": np.ones(len(X)), "compiler_steps": self._count_steps(X)}
        variables |= {name: self._distance_outside(X, name) for name in OUTSIDE}
        variables["published"] = self._read_published(X)
        variables["forecast"] = 1 / np.sqrt(1 + known)
        variables["forecast_efficiency"] = variables["forecast"] * variables["efficiency"]
        labels = {name for effect in self._effects if (name := effect.partition(" of ")[2])}
        logs = self._logs(X, self.estimate)
        usual = self._by_task(_ESTIMATE, task_labels(X, self.columns_))
        texts = {name: self._join(X, *name.split("+")) for name in sorted(labels)}
        return _Rows(kinds, variables, texts, np.where(np.isfinite(logs), logs, usual))

    def _read(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return the variables that are centered, NaN where unknown, (n,) each."""
        cores, clock, chips = (
            self._logs(X, name)
            for name in (
                "cores_enabled_total",
                "all_core_turbo_mhz",
                "chips",
            )
        )
        is_rate = self._join(X, "metric") == "rate"
        return {
            "log_cores": cores,
            "chips_past_2": np.maximum(chips / np.log(2) - 1.0, 0.0),
            "efficiency": self._logs(X, self.estimate) - clock - np.where(is_rate, cores, 0.0),
        }

    def _read_published(self, X: pd.DataFrame) -> np.ndarray:
        """Return the variable `published`, 0 where nothing is published, (n,)."""
        published = self._logs(X, self.estimate.replace(_ESTIMATE, "published"))
        difference = np.nan_to_num(published - self._logs(X, self.estimate))
        return np.asarray(np.clip(difference, -_PUBLISHED_LIMIT, _PUBLISHED_LIMIT))

    def _distance_outside(self, X: pd.DataFrame, name: str) -> np.ndarray:
        """Return how far the logarithms of a column are outside its range in training, 0 where unknown, (n,)."""
        if name not in self.ranges_:
            return np.zeros(len(X))
        low, high = self.ranges_[name]
        logs = np.nan_to_num(self._logs(X, OUTSIDE[name]), nan=low)
        return np.asarray(np.maximum(low - logs, 0.0) + np.maximum(logs - high, 0.0))

    def _count_steps(self, X: pd.DataFrame) -> np.ndarray:
        """Return how many older releases of the vendor of its compiler training has, (n,)."""
        vendors = self._join(X, "compiler_vendor")
        versions = named_numbers(X, self.columns_, "compiler_version")
        pairs = zip(vendors.tolist(), versions.tolist(), strict=True)
        return np.array(
            [sum(old < new for old in self.versions_.get(vendor, ())) for vendor, new in pairs], dtype=float
        )

    def _kinds(self, X: pd.DataFrame) -> np.ndarray:
        """Return the weights of the kinds in every row: its kind alone, or all of them equally, (n, kinds)."""
        kinds = self._join(X, "domain", "metric")
        weights = np.array([kinds == kind for kind in KINDS], dtype=float).T
        return np.where(weights.any(axis=1, keepdims=True), weights, 1.0 / len(KINDS))

    def _logs(self, X: pd.DataFrame, name: str) -> np.ndarray:
        values = named_numbers(X, self.columns_, name)
        return np.log(np.where(values > 0, values, np.nan))

    def _join(self, X: pd.DataFrame, *names: str) -> np.ndarray:
        """Return the texts of columns joined by blanks, None where one is unknown or not there, (n,)."""
        if not set(names) <= set(X.columns):
            return np.full(len(X), None, dtype=object)
        rows = zip(*(X[name].tolist() for name in names), strict=True)
        joined = [None if any(pd.isna(cell) for cell in row) else " ".join(map(str, row)) for row in rows]
        return np.array(joined, dtype=object)

    def _save(self, folder: Path) -> None:
        state = {
            "medians": self.medians_,
            "centers": self.centers_,
            "versions": self.versions_,
            "ranges": self.ranges_,
        }
        write_json(folder / _STATE, state)
        residuals = {_RESIDUAL + target: each for target, each in zip(self.targets_, self._residuals.T, strict=True)}
        self._training.assign(**residuals).to_parquet(folder / _ROWS, index=False, write_page_checksum=True)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / _STATE)
        rows = read_parquet(folder / _ROWS)
        self.medians_, self.centers_ = state["medians"], state["centers"]
        self.versions_, self.ranges_ = state["versions"], state["ranges"]
        self._residuals = np.column_stack([rows.pop(_RESIDUAL + target) for target in self.targets_])
        self._training = rows
        self._condition()


def _median(values: np.ndarray) -> float:
    """Return the median of the known values, 0 without any."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else 0.0
