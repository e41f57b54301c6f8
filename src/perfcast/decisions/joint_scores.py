"""Joint draws of the scores of machines: the spread of every estimate, with the correlations of their errors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.decisions.criteria import Output, error_quantiles
from perfcast.decisions.machine_comparison import correlate_errors
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.measured_index import PublishedScores
from perfcast.inference.options import PredictOptions
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.predict import answer_machines
from perfcast.inference.prediction import Estimate, Prediction
from perfcast.inference.suite_answers import SuiteAnswers, list_estimates
from perfcast.inference.suites import Measured, Suites
from perfcast.uncertainty.levels import ErrorRows
from perfcast.utils.errors import UserError

DRAWS = 4096
_MAX_LEVEL = 1 - 1e-9


class Spread(NamedTuple):
    """Distribution of the logarithm of a score, symmetric about `middle`.

    `half_width` is half the interval of `level`; the size of an error is spread otherwise as `quantiles` are, those of
    backtests at levels evenly from 0 to 1. `is_published`: whether published results of the machine are its source.
    """

    middle: float
    half_width: float
    level: float
    quantiles: Sequence[float]
    is_published: bool = False


def spread_estimate(estimate: Estimate, quantiles: Sequence[float], noise: float) -> Spread:
    """Return the spread of a score: of the published results of this very machine, or else of the estimate.

    The deviation of published results follows from their range and number, and is at least the `noise` between results
    of one set-up; their interval is at most as wide as that of the estimate.
    Source: expected largest of n normal values (Blom, 1958, Statistical Estimates and Transformed Beta-Variables).
    """
    low, high = estimate.low or estimate.median, estimate.high or estimate.median
    half = (math.log(high) - math.log(low)) / 2
    published = estimate.published
    if not is_of_machine(published) or published is None or not published.median:
        # intervals of several backtests are centered at their bias, so the middle is the median
        return Spread((math.log(high) + math.log(low)) / 2, half, estimate.level, quantiles)
    deviation, count = noise, published.count
    if count > 1 and published.low and published.high:
        largest = NormalDist().inv_cdf((count - 0.375) / (count + 0.25))
        deviation = max(noise, (math.log(published.high) - math.log(published.low)) / (2 * largest))
    width = min(half, deviation * NormalDist().inv_cdf((1 + estimate.level) / 2))
    return Spread(math.log(published.median), width, estimate.level, quantiles, is_published=True)


def is_of_machine(published: PublishedScores | None) -> bool:
    """Return whether published results are of exactly the described machine."""
    return published is not None and not published.differs


class JointScores:
    """Draws of the logarithms of scores, (n, DRAWS): the spreads as margins, a normal copula between them.

    Scores from published results have errors of their own. Every draw stands beside its mirror image. Shapes:
    `spreads` n, `correlations` (n, n) of the errors of estimates.
    """

    def __init__(self, spreads: Sequence[Spread], correlations: np.ndarray, seed: int = 0) -> None:
        self.spreads = spreads
        apart = np.array([spread.is_published for spread in spreads], dtype=bool)
        shared = np.where(apart[:, None] | apart, np.eye(len(spreads)), correlations)
        values, vectors = np.linalg.eigh(shared)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        factor /= np.maximum(np.linalg.norm(factor, axis=1, keepdims=True), 1e-12)
        half = factor @ np.random.default_rng(seed).standard_normal((len(spreads), DRAWS // 2))
        self._normals, self._correlations = np.concatenate([half, -half], axis=1), factor @ factor.T
        self.logs = self._draw(self._normals)

    def know(self, rows: Sequence[int]) -> np.ndarray:
        """Return the draws as they are where some rows are known to have their middles."""
        known = list(rows)
        inverse = np.linalg.pinv(self._correlations[np.ix_(known, known)], hermitian=True)
        left = self._normals - self._correlations[:, known] @ inverse @ self._normals[known]
        left[known] = 0.0
        return self._draw(left)

    def _draw(self, normals: np.ndarray) -> np.ndarray:
        from scipy.special import ndtr  # most commands need none of it

        levels = np.minimum(2 * ndtr(np.abs(normals)) - 1, _MAX_LEVEL)
        logs = np.empty(normals.shape)
        for row, spread in enumerate(self.spreads):
            grid = np.linspace(0.0, 1.0, len(spread.quantiles))
            unit = max(float(np.interp(spread.level, grid, spread.quantiles)), 1e-12)
            size = np.interp(levels[row], grid, spread.quantiles) / unit * spread.half_width
            logs[row] = spread.middle + np.sign(normals[row]) * size
        return logs


@dataclass(frozen=True)
class MachineScores:
    """Scores of different machines: `estimates` and `joint` have the row that is `row_of` a place and a task.

    `machines` have places as keys; `predictions` are by place, those of a machine without its estimates.
    """

    machines: ParsedMachines
    row_of: Mapping[tuple[int, str], int]
    estimates: Sequence[Estimate]
    joint: JointScores
    predictions: Mapping[int, Prediction]


def predict_scores(
    placed: Sequence[MachineEntry],
    champion: Champion,
    mix: Mapping[Output, float],
    options: PredictOptions,
    measured: Measured,
    *,
    seed: int = 0,
) -> tuple[MachineScores | None, Mapping[int, UserError]]:
    """Return the scores of different machines, and the errors of those that cannot be used, by place.

    Args: the line of every entry is its place; draws of equal seeds have equal normal values.
    """
    parsed, errors = _parse_placed(placed, champion)
    if not parsed.keys:
        return None, errors
    predictions: dict[int, Prediction] = {}
    frames = []
    rows = []
    by_task = parsed.for_tasks([output.task for output in mix], champion)
    for answers in answer_machines([by_task], Suites(champion), options, measured):
        predictions |= answers.predictions
        for side in filter(None, answers.sides):
            frames.append(_add_sizes(side))
            rows.append(side.errors)
    frame = pd.concat(frames, ignore_index=True)
    for place, message in frame.loc[frame["message"] != "", ["machine", "message"]].itertuples(index=False, name=None):
        errors[place] = UserError(f"{placed[place].label} must have an estimate", message)
    for place in frame.loc[~(frame["size"] > 0), "machine"]:
        needed = " and ".join(champion.rules.presentation.score_columns)
        errors[place] = UserError(f"a machine must give {needed}", f"{placed[place].label} has none")
    is_asked = frame["target"] == frame["task"].map({output.task: output.target for output in mix})
    is_used = (is_asked & ~frame["machine"].isin(list(errors))).to_numpy()
    frame = frame[is_used]
    if frame.empty:
        return None, errors
    correlations = correlate_errors(reduce(ErrorRows.join, rows).take(is_used), champion, next(iter(measured), None))
    estimates = list_estimates(frame)
    spreads = [
        spread._replace(middle=spread.middle + math.log(size))
        for spread, size in zip(_spread_estimates(estimates, champion), frame["size"].tolist(), strict=True)
    ]
    row_of = {key: row for row, key in enumerate(zip(frame["machine"].tolist(), frame["task"], strict=True))}
    parsed = parsed.take(np.array([place not in errors for place in parsed.keys], dtype=bool))
    return MachineScores(parsed, row_of, estimates, JointScores(spreads, correlations, seed), predictions), errors


def _parse_placed(placed: Sequence[MachineEntry], champion: Champion) -> tuple[ParsedMachines, dict[int, UserError]]:
    """Return the machines that can be used, each by its place, and the errors of others."""
    parsed = parse_batch(placed, champion, has_task=False)
    lines = [parsed.line_of(key) for key in parsed.keys]
    errors = dict(parsed.refusals)
    for place in (place for place, count in Counter(lines).items() if count > 1):
        missing = str(champion.rules.typical_values.enumerated)
        errors[place] = UserError(f"a machine must give {missing}", f"{placed[place].label} has none", f"add {missing}")
    usable = np.array([place not in errors for place in lines], dtype=bool)
    known = parsed.known.take(usable)
    known.cells.index = np.array(lines, dtype=int)[usable]
    machines = {line: parsed.machines[key] for key, line in zip(parsed.keys, lines, strict=True)}
    return replace(parsed, known=known, machines=machines), errors


def _add_sizes(side: SuiteAnswers) -> pd.DataFrame:
    """Return estimates with the number of units of their machine as `size`."""
    shown, cells = side.champion.rules.presentation, side.predicted.completed.cells
    sizes = [shown.size_of({name: cells[name][row] for name in shown.score_columns}) for row in side.estimates["row"]]
    return side.estimates.assign(size=sizes)


def _spread_estimates(estimates: Sequence[Estimate], champion: Champion) -> list[Spread]:
    """Return the spread of every estimate."""
    calibrated = champion.calibrated
    noise = float(np.sqrt(calibrated.known.levels.noise)) if calibrated and calibrated.known else np.inf
    return [
        spread_estimate(each, error_quantiles(champion, (each.task, each.target)) if calibrated else (0.0, 1.0), noise)
        for each in estimates
    ]
