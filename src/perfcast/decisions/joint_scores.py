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

from perfcast.decisions.criteria import Output, error_quantiles
from perfcast.decisions.machine_comparison import correlate_errors
from perfcast.inference.champion import Champion
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.measured_index import PublishedScores
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.predict import MachineAnswers, PredictOptions, batches
from perfcast.inference.prediction import Estimate, Prediction
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Tag
from perfcast.uncertainty.levels import ErrorRows, outputs_of
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
    measurements: UserMeasurements | None,
    *,
    seed: int = 0,
) -> tuple[MachineScores | None, Mapping[int, UserError]]:
    """Return the scores of different machines, and the errors of those that cannot be used, by place.

    Args: the line of every entry is its place; draws of equal seeds have equal normal values.
    """
    parsed = parse_batch(placed, champion, has_task=False)
    lines = [parsed.line_of(key) for key in parsed.keys]
    errors, counted = dict(parsed.refusals), Counter(lines)
    for place in (place for place, count in counted.items() if count > 1):
        missing = str(champion.rules.typical_values.enumerated)
        errors[place] = UserError(f"a machine must give {missing}", f"{placed[place].label} has none", f"add {missing}")
    usable = np.array([place not in errors for place in lines], dtype=bool)
    known = parsed.known.take(usable)
    known.cells.index = np.array(lines, dtype=int)[usable]
    machines = {line: parsed.machines[key] for key, line in zip(parsed.keys, lines, strict=True)}
    parsed = replace(parsed, known=known, machines=machines)
    if not parsed.keys:
        return None, errors
    target_of = {output.task: output.target for output in mix}
    by_task = parsed.for_tasks(list(target_of), champion)
    keys, predictions, parts = list[tuple[int, str]](), dict[int, Prediction](), list[ErrorRows]()
    of_key: dict[tuple[int, str], Estimate] = {}
    sizes, columns = list[float](), champion.rules.presentation.score_columns
    size_of = champion.rules.presentation.size_of
    for numbers in batches(len(by_task.known.codes)):
        batch = replace(by_task, known=by_task.known.take(numbers))
        imputed = impute_machines(batch, champion, options.when, assume=options.assume)
        answers = MachineAnswers(imputed, champion, options, measurements)
        table = answers.predicted.table
        tasks = table.frame[table.column_of(Tag.TASK)].astype(str)
        parts.append(ErrorRows.of(table, outputs_of(tasks, tasks.map(target_of))))
        keys += zip(batch.keys, tasks, strict=True)
        cells = answers.predicted.completed.cells
        sizes += [size_of({name: cells[name][row] for name in columns}) for row in range(len(tasks))]
        for each in answers.list_predictions(parsed.notes):
            before = predictions.get(each.line, each)  # a machine may stand in two batches
            predictions[each.line] = replace(before, unpredicted=before.unpredicted + each.unpredicted)
            of_key |= {(each.line, made.task): made for made in each.estimates if made.target == target_of[made.task]}
    for place, prediction in predictions.items():
        for refused in prediction.unpredicted:
            errors[place] = UserError(f"{placed[place].label} must have an estimate", refused.message)
    known_errors = champion.calibrated.known if champion.calibrated else None
    noise = np.inf if known_errors is None else float(np.sqrt(known_errors.levels.noise))
    for (place, _), size in zip(keys, sizes, strict=True):
        if not size > 0:
            errors[place] = UserError(f"a machine must give {' and '.join(columns)}", f"{placed[place].label} has none")
    usable_rows = np.array([place not in errors and (place, task) in of_key for place, task in keys], dtype=bool)
    keys = [key for key, keep in zip(keys, usable_rows, strict=True) if keep]
    if not keys:
        return None, errors
    estimates = [of_key[key] for key in keys]
    spreads = [spread_estimate(each, error_quantiles(each, champion) or (0.0, 1.0), noise) for each in estimates]
    rows = reduce(ErrorRows.join, parts).take(usable_rows)
    whole = np.log(np.array(sizes)[usable_rows]).tolist()
    spreads = [each._replace(middle=each.middle + size) for each, size in zip(spreads, whole, strict=True)]
    joint = JointScores(spreads, correlate_errors(rows, champion, measurements), seed)
    row_of = {key: row for row, key in enumerate(keys)}
    parsed = parsed.take(np.array([place not in errors for place in parsed.keys], dtype=bool))
    return MachineScores(parsed, row_of, estimates, joint, predictions), errors
