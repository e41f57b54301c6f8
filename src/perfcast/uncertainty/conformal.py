"""Conformal prediction intervals from the residuals of backtests, scaled by the distance from the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.uncertainty.in_domain import AHEAD, RESULTS, InDomainModel
from perfcast.uncertainty.levels import KnownErrors
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

LEVEL = 0.9
"""Default level of an interval."""

DEVIATION = "deviation"
"""Column of predictions: standard deviation of the error in logarithms, where the predictor gives it."""

TEST = -1
"""Number of the test part where backtests have their number."""

_MIN_ROWS = 50
"""Residuals of an output below which it shares those of its kind."""

_MIN_KIND_ROWS = 20
"""Residuals of a kind below which its outputs share those of all."""

_VISIBLE = 0.005
"""Share of the base below which a distance does not change the in-domain score as it is printed."""

_MIN_HALF_WIDTH = 1e-9

_PENALTY = 0.01
"""Penalty of the weights of distances with several backtests: which distance matters differs by release."""

_POOLED_BACKTESTS = 2.0
"""Backtests that the quantiles of all outputs count as, beside those of one output."""

_GRID = np.linspace(0.0, 1.0, 201)
_MAX_FACTOR = 2.0

_MEAN_ERROR = float(np.sqrt(2 / np.pi))
"""Mean absolute error of a normal distribution, in standard deviations."""
HALF_NORMAL = [NormalDist().inv_cdf((1 + min(level, 0.9999)) / 2) / _MEAN_ERROR for level in _GRID.tolist()]
"""Quantiles of the absolute errors of a normal distribution, in units of their mean."""


class ConformalCalibration:
    """Intervals in logarithms: a quantile of an output x the expected error at a machine's distances.

    The expected error is a non-negative sum, base + weight x distance (`InDomainModel`), fitted to the absolute
    residuals of backtests, so it never falls with distance. It is at least base + drift x years ahead: in backtests the
    newer software of a row explains its error, while a machine of a later year is described by what is known today.
    Residuals over it are the conformal scores. Quantiles are those of the scores of all backtests, each with the same
    weight however many rows it has. Rows of one entity err alike, so the correction of a quantile for the finite number
    of scores counts what they are worth
    (`independent_count`).

    Several backtests are forecasts of several releases, and the next release is unlike each of them. So what they show
    is shrunk: the weights of the distances have a penalty, and the quantiles of an output are R / (R + 2) its own, with
    R backtests, and the rest those of all outputs. One backtest has machines like the test rows, and is taken as it is;
    of fewer than `_MIN_ROWS` residuals the weights have a penalty of 1 / n.

    Outside of the backtests nobody knows: a distance counts at least the smallest of any backtest and at most
    `_MAX_FACTOR` times the largest, and no half-width is more than so many times the largest residual. Only in the
    in-domain score do distances count whole.
    Shapes: residuals (n,) log predicted - log measured; distances (n, names).
    Source: normalized split conformal regression (Papadopoulos et al., 2002; Lei et al., 2018, J. Am. Stat. Assoc.
    113), weighted by backtest (Barber et al., 2023, Ann. Stat. 51); groups of alike rows and partial pooling (Dunn et
    al., 2023, J. Am. Stat. Assoc. 118).
    """

    base: float
    weights: dict[str, float]
    drift: float
    """Growth per year of the expected error of an entity with training rows, 0 without dates."""
    nearest: dict[str, float]
    """The distances that count at least: nobody knows the errors at smaller ones than those of backtests."""
    farthest: dict[str, float]
    """The distances that count most."""
    quantiles: dict[str, list[float]]
    """Of the scores by output, "" for all of them, at the grid of 0, 0.5, ... 100 %."""
    most: float
    """The largest half-width."""

    def fit(
        self,
        residuals: np.ndarray,
        outputs: np.ndarray,
        backtests: np.ndarray,
        distances: pd.DataFrame,
        *,
        entities: np.ndarray | None = None,
        kinds: np.ndarray | None = None,
    ) -> Self:
        """Fit to the residuals of backtests, (n,) each; without `entities` every row is one of its own.

        Args: `kinds` are labels of outputs that err alike, as accuracies do, "" for none.
        Raises: ValueError when there are no residuals.
        """
        if not len(residuals):
            raise ValueError("a calibration needs residuals of backtests")
        count = len(np.unique(backtests))
        sizes = np.abs(np.asarray(residuals, dtype=float))
        backtests = np.asarray(backtests)
        outputs = np.asarray(outputs).astype(str)
        entities = np.arange(len(sizes)) if entities is None else np.asarray(entities)
        share = 1 / pd.Series(backtests).groupby(backtests).transform("size").to_numpy(dtype=float)
        penalty = 1 / len(sizes) if len(sizes) < _MIN_ROWS else _PENALTY if count > 1 else 0.0
        self.base, weights = fit_expected_error(sizes, distances.to_numpy(dtype=float), share, penalty)
        self.weights = dict(zip(map(str, distances.columns), map(float, weights), strict=True))
        self.drift = _fit_drift(sizes, distances, share)
        self.nearest = {str(name): float(values.min()) for name, values in distances.items()}
        self.farthest = {str(name): _MAX_FACTOR * float(values.max()) for name, values in distances.items()}
        self.most = max(_MAX_FACTOR * float(sizes.max()), self.base)
        scores = sizes / self.expected_error(distances)

        def quantiles_of(rows: np.ndarray) -> np.ndarray:
            return _quantiles_at(scores[rows], share[rows], _GRID, independent_count(scores[rows], entities[rows]))

        pooled = quantiles_of(np.ones(len(scores), dtype=bool))
        own_share = count / (count + _POOLED_BACKTESTS) if count > 1 else 1.0
        self.quantiles = {"": pooled.tolist()}
        kinds = np.full(len(sizes), "") if kinds is None else np.asarray(kinds).astype(str)
        for output in sorted(set(outputs)):
            rows = outputs == output
            least = _MIN_ROWS
            if rows.sum() < least and kinds[rows][0]:
                rows = np.isin(kinds, kinds[rows])
                least = _MIN_KIND_ROWS
            if rows.sum() >= least:
                self.quantiles[output] = (own_share * quantiles_of(rows) + (1 - own_share) * pooled).tolist()
        return self

    def expected_error(self, distances: pd.DataFrame) -> np.ndarray:
        """Return the expected absolute error in logarithms at the given distances, (n,)."""
        least = [self.nearest.get(str(name), 0.0) for name in distances]
        most = [self.farthest.get(str(name), np.inf) for name in distances]
        explained = self._explain(np.clip(distances.to_numpy(dtype=float), least, most), distances.columns)
        if AHEAD not in distances:
            return explained
        years = np.minimum(distances[AHEAD].to_numpy(dtype=float), self.farthest.get(AHEAD, np.inf))
        return np.asarray(np.maximum(explained, self.base + self.drift * years))

    def _explain(self, distances: np.ndarray, names: pd.Index) -> np.ndarray:
        weights = np.array([self.weights[str(name)] for name in names])
        return np.asarray(self.base + distances @ weights)

    def in_domain_score(self, distances: pd.DataFrame) -> np.ndarray:
        """Return how close machines are to the training rows, (n,), 1 (close) to nearly 0.

        0.25: at such a distance the errors of backtests were four times those at distance 0.
        """
        return np.asarray(self.base / self._explain(distances.to_numpy(dtype=float), distances.columns))

    def least_similar_group(self, distances: pd.DataFrame) -> pd.Series:
        """Return the distance that lowers the in-domain score most, index as given, "" where none lowers it visibly."""
        names = np.array([*map(str, distances.columns), ""], dtype=object)
        shares = distances.to_numpy(dtype=float) * np.array([self.weights[name] for name in names[:-1]])
        is_visible = shares.max(axis=1) > _VISIBLE * self.base
        return pd.Series(names[np.where(is_visible, shares.argmax(axis=1), -1)], distances.index)

    def half_widths(self, outputs: np.ndarray, distances: pd.DataFrame, level: float = LEVEL) -> np.ndarray:
        """Return half the width in logarithms of the interval of a level about the prediction, (n,).

        Raises: ValueError when the level is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"a level must be between 0 and 1; got {level}")
        by_output = {output: float(np.interp(level, _GRID, values)) for output, values in self.quantiles.items()}
        factors = np.array([by_output.get(str(output), by_output[""]) for output in outputs])
        half_widths = np.minimum(factors * self.expected_error(distances), self.most)
        return np.asarray(np.maximum(half_widths, _MIN_HALF_WIDTH), dtype=float)

    def pit(self, outputs: np.ndarray, distances: pd.DataFrame, residuals: np.ndarray) -> np.ndarray:
        """Return the level of the narrowest interval that holds each residual, (n,), inf where none does.

        It is the probability integral transform of the size of an error: uniform from 0 to 1 for perfect intervals.
        """
        scores = np.abs(residuals) / self.expected_error(distances)
        levels = np.empty(len(scores))
        keys = [output if output in self.quantiles else "" for output in map(str, outputs)]
        names = np.asarray(keys, dtype=object)
        for output in set(names):
            places = np.searchsorted(np.asarray(self.quantiles[output]), scores[names == output] * (1 - 1e-12))
            levels[names == output] = np.append(_GRID, np.inf)[places]
        return levels

    def to_state(self) -> dict[str, Any]:
        """Return what was fitted as values that JSON can hold."""
        return {name: getattr(self, name) for name in ConformalCalibration.__annotations__}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild from `to_state()`."""
        calibration = cls()
        calibration.base = float(state["base"])
        calibration.weights = dict(state["weights"])
        calibration.nearest = dict(state.get("nearest", {}))  # calibrations of earlier versions have none
        calibration.farthest = dict(state.get("farthest", {}))
        calibration.drift = float(state.get("drift", 0.0))
        calibration.most = float(state["most"])
        calibration.quantiles = {output: list(values) for output, values in state["quantiles"].items()}
        calibration._require_possible()
        return calibration

    def _require_possible(self) -> None:
        """Raise a UserError for values that `fit` never gives: their intervals would end before they begin."""
        rising = all(
            len(values) == len(_GRID) and values[0] >= 0 and values == sorted(values)
            for values in self.quantiles.values()
        )
        falling = (
            min(self.drift, *self.weights.values(), *self.nearest.values(), *self.farthest.values()) < 0
            or not 0 < self.base <= self.most
        )
        if falling or not rising or "" not in self.quantiles:
            fact = "an error, a weight, a distance or a quantile is negative or out of order"
            raise UserError("a calibration must be one of backtests", fact, "make it again, or fetch it again")


@dataclass(frozen=True)
class UncertaintyModel:
    """Uncertainty of a fitted predictor: distances from its training rows, and its errors at such distances."""

    in_domain: InDomainModel
    calibration: ConformalCalibration
    known: KnownErrors | None = None
    """Levels of errors, with the errors of results after training; None where they were not fitted."""
    scales: tuple[float, ...] = ()
    """Factors of the half-width of a draw by level of description; none where they were not fitted."""

    def intervals(
        self,
        X: pd.DataFrame,
        outputs: np.ndarray,
        when: pd.Series | None = None,
        level: float = LEVEL,
        ignored: pd.DataFrame | None = None,
        *,
        encoded: np.ndarray | None = None,
        deviations: np.ndarray | None = None,
    ) -> pd.DataFrame:
        """Return the uncertainty of the prediction of every row.

        Args: cells that `ignored` (n, columns) bool marks do not count in the in-domain score, and `encoded` are the
        encoded rows, see `InDomainModel.distances`. With `deviations` (n,) of a predictor that has them, the intervals
        are those of normal distributions.
        Shapes: X (n, columns), outputs (n,) as they were calibrated -> index as in X, columns below and above (from the
        prediction to the ends of its interval, in logarithms), expected_error (absolute, in logarithms),
        in_domain_score (1 is close) and least_similar_group ("" where there is none).
        """
        encoded = self.in_domain.encode(X) if encoded is None else encoded
        distances = self.in_domain.distances(X, when, encoded=encoded)
        without = distances if ignored is None else self.in_domain.ignore(distances, encoded, ignored)
        half_widths = self.calibration.half_widths(outputs, distances, level)
        expected = self.calibration.expected_error(distances)
        if deviations is not None:
            half_widths = normal_half_widths(deviations, level)
            expected = deviations * _MEAN_ERROR
        return pd.DataFrame(
            {
                "below": half_widths,
                "above": half_widths,
                "expected_error": expected,
                "in_domain_score": self.calibration.in_domain_score(without),
                "least_similar_group": self.calibration.least_similar_group(without),
            },
            index=X.index,
        )

    def save(self, folder: Path) -> None:
        """Write all models to a folder."""
        self.in_domain.save(folder)
        write_json(folder / "calibration.json", self.calibration.to_state())
        if self.scales:
            write_json(folder / "scales.json", {"scales": list(self.scales)})
        if self.known is not None:
            self.known.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        known = KnownErrors.load(folder) if (folder / "levels.json").is_file() else None
        calibration = ConformalCalibration.from_state(read_state(folder / "calibration.json"))
        scales = read_state(folder / "scales.json")["scales"] if (folder / "scales.json").is_file() else ()
        return cls(InDomainModel.load(folder), calibration, known, tuple(map(float, scales)))


def normal_half_widths(deviations: np.ndarray, level: float) -> np.ndarray:
    """Return half the width of the intervals of a level of normal distributions, (n,)."""
    return np.asarray(deviations * NormalDist().inv_cdf((1 + level) / 2))


def weighted_quantile(scores: np.ndarray, share: np.ndarray, level: float) -> float:
    """Return a weighted quantile of scores, corrected for their finite number. Shapes: scores and share (n,)."""
    return float(_quantiles_at(scores, share, np.array([level]), len(scores))[0])


def _quantiles_at(scores: np.ndarray, share: np.ndarray, wanted: np.ndarray, count: float) -> np.ndarray:
    """Return weighted quantiles of the scores, corrected for their finite number, `count` independent ones.

    The new score is one more that may be larger than all of them: level x (n + 1) / n, at most the largest score.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    levels = np.cumsum(share[order]) / share.sum()
    targets = np.minimum(wanted * (count + 1) / count, 1.0)
    places = np.minimum(np.searchsorted(levels, targets - 1e-12), len(ordered) - 1)
    return np.asarray(ordered[places])


def probability_at_least(
    threshold: float, median: float, high: float, level: float, quantiles: Sequence[float]
) -> float:
    """Return the probability that the measured score is at least the threshold.

    The error in logarithms is taken to be symmetric about the median, with the spread of the interval of `level` that
    ends at `high`, and spread otherwise as the scores of backtests are: `quantiles` of them at levels evenly from 0
    to 1 (`ConformalCalibration.quantiles`), interpolated. Past the largest but one of those levels the probability is
    constant: an error larger than those of all backtests is not impossible.
    Source: the predictive distribution of a conformal predictor (Vovk et al., 2019, Machine Learning 108), made
    symmetric, since calibration has the size of errors alone.
    """
    scores = np.asarray(quantiles, dtype=float)
    grid = np.linspace(0.0, 1.0, len(scores))
    expected_error = np.log(high / median) / np.interp(level, grid, scores)
    margin = np.log(median / threshold)
    within = _interval_level(abs(margin) / expected_error, scores, grid)
    return float(0.5 + 0.5 * np.sign(margin) * within)


def _interval_level(score: float, scores: np.ndarray, grid: np.ndarray) -> float:
    """Return the share of scores up to the given one, at most the largest level but one; none is below 0."""
    distinct, first = np.unique(scores, return_index=True)
    last = np.append(first[1:], len(scores)) - 1
    level = np.interp(score, np.append(-1e-300, distinct), np.append(0.0, grid[last]))
    return float(min(level, grid[-2]))


def joint_bounds(probabilities: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest probability that all of several events happen, whatever their dependence.

    Source: Fréchet's bounds (1935): max(0, sum - (n - 1)) and the smallest of them.
    """
    if not probabilities:
        return 1.0, 1.0
    return max(0.0, sum(probabilities) - (len(probabilities) - 1)), min(probabilities)


_EXPECTED_DECIMALS = 3
"""Decimals of base and weights of the expected error, in units of the mean error."""
_MIN_BASE = 0.2
"""Least error at distance 0, as a share of the mean error. The likelihood alone trusts rows that repeat a training row
too much: shares of 0.02 to 0.45 were compared on forecasts before 2023."""

_CUT_QUANTILE = 0.99
"""Quantile at which residuals are cut off before their size is explained: a mistyped score explains nothing."""


def fit_expected_error(
    sizes: np.ndarray, distances: np.ndarray, share: np.ndarray, penalty: float
) -> tuple[float, np.ndarray]:
    """Return base and weights of the expected error, base + distances @ weights, none of them negative.

    They maximize the likelihood of errors with a Laplace distribution of that mean absolute size. Least squares of the
    sizes would be ruled by the largest errors; the likelihood compares each error with its expectation. `penalty` times
    the sum of (weight / mean error)^2 is added to the mean negative logarithm of the likelihood.
    Shapes: sizes (n,) absolute residuals; distances (n, names); share (n,) weights of the rows -> weights (names,).
    """
    from scipy.optimize import minimize  # predictions, which import this module, need none of it

    share = share / share.sum()
    cut = np.minimum(sizes, np.quantile(sizes, _CUT_QUANTILE))
    mean = max(float(share @ cut), 1e-9)
    cut = cut / mean
    names = distances.shape[1]
    explained = np.column_stack([np.ones(len(cut)), distances])

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        expected = explained @ values
        weights = values[1:]
        gradient = explained.T @ (share * (1 / expected - cut / expected**2))
        gradient[1:] += 2 * penalty * weights
        return float(share @ (np.log(expected) + cut / expected) + penalty * weights @ weights), gradient

    start = np.append(0.5, np.full(names, 0.5 / max(names, 1)))
    bounds = [(_MIN_BASE, None), *[(0.0, None)] * names]
    tight = {"ftol": 1e-13, "gtol": 1e-7}
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=tight).x
    # where the search ends depends on the last bits of its sums, which are those of the processor
    values = mean * solution.round(_EXPECTED_DECIMALS)
    return float(values[0]), values[1:]


def _fit_drift(sizes: np.ndarray, distances: pd.DataFrame, share: np.ndarray) -> float:
    """Return how much the errors of entities with training rows grow in a year after the last of them.

    With the growth of all rows the second year is covered too well (interval scores of backtests before 2023: 38.2,
    without growth 37.2, with this one 37.1).
    """
    if AHEAD not in distances or RESULTS not in distances:
        return 0.0
    known = (distances[RESULTS] < 1).to_numpy() & (distances[AHEAD] > 0).to_numpy()
    if known.sum() < _MIN_ROWS:
        return 0.0
    return float(
        fit_expected_error(sizes[known], distances.loc[known, [AHEAD]].to_numpy(float), share[known], 0.0)[1][0]
    )


def units_of_error(entities: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return labels of rows that err alike: the entity, or the block where all rows are of one entity, (n,)."""
    return entities if len(pd.unique(entities)) > 1 else blocks


def independent_count(scores: np.ndarray, entities: np.ndarray) -> float:
    """Return how many independent scores have the information of scores that are alike within an entity.

    It is n / (1 + (m - 1) rho), with m the mean size of the entity of a score and rho the intraclass correlation of
    the ranks of the scores, by a one-way analysis of variance; at least the number of entities. One entity cannot show
    how entities differ: all its scores count.
    Shapes: scores and entities (n,).
    Source: design effect (Kish, 1965, Survey Sampling, section 5.4); intraclass correlation of unequal groups
    (Donner, 1986, International Statistical Review 54).
    """
    codes, names = pd.factorize(entities)
    count = len(scores)
    groups = len(names)
    if not 1 < groups < count:
        return float(count)
    ranks = pd.Series(scores).rank().to_numpy()
    sizes = np.bincount(codes)
    means = np.bincount(codes, ranks) / sizes
    between = sizes @ (means - ranks.mean()) ** 2 / (groups - 1)
    within = ((ranks - means[codes]) ** 2).sum() / (count - groups)
    per_group = (count - sizes @ sizes / count) / (groups - 1)
    total = between + (per_group - 1) * within
    correlation = float(np.clip((between - within) / total, 0, 1)) if total > 0 else 0.0
    alike = sizes @ sizes / count
    return max(float(groups), float(count / (1 + (alike - 1) * correlation)))
