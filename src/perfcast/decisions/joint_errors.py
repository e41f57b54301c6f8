"""Joint errors of the predictions of several machines: their correlations, and draws of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import erf

import numpy as np
import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawPredictions
from perfcast.inference.predict import PredictOptions
from perfcast.inference.prediction import Estimate
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import outputs_of
from perfcast.uncertainty.correlation import ErrorRows, shared_labels

Key = tuple[int, str, str]
"""Line of a machine, task and target."""
_ROOT = 2**0.5


def error_quantiles(estimate: Estimate, champion: Champion) -> list[float] | None:
    """Return the quantiles of the errors of backtests of an estimate's output, None without an interval."""
    if champion.calibrated is None or estimate.low is None or estimate.high is None:
        return None
    quantiles = champion.calibrated.calibration.quantiles
    return quantiles.get(str(outputs_of(pd.Series([estimate.task]), estimate.target)[0]), quantiles[""])


class JointErrors:
    """Correlations of the errors of drawn machines in all outputs, those that user measurements leave.

    Without fitted correlations the errors are taken as independent.
    """

    def __init__(
        self,
        drawn: DrawPredictions,
        champion: Champion,
        options: PredictOptions,
        measurements: UserMeasurements | None = None,
    ) -> None:
        self._champion = champion
        table = drawn.table
        tasks = table.frame[table.column_of(Tag.TASK)]
        keys = list(zip(drawn.completed.frame.index.tolist(), tasks.astype(str), strict=True))
        targets = champion.predictor.targets_
        outputs = ((int(line), task, target) for target in targets for line, task in keys)
        self._place: dict[Key, int] = {key: place for place, key in enumerate(outputs)}
        self._matrix = np.eye(len(self._place))
        calibrated = champion.calibrated
        if calibrated is None or calibrated.correlation is None:
            return
        when = None if options.when is None else pd.Series(options.when, index=table.frame.index)
        names = [outputs_of(tasks, target) for target in targets]
        expected = [calibrated.intervals(table.frame, each, when)["expected_error"].to_numpy() for each in names]
        labels = pd.concat([shared_labels(table)] * len(targets), ignore_index=True)
        rows = ErrorRows(labels, np.concatenate(names), np.concatenate(expected))
        known = measurements.known_at(options.when) if measurements else None
        self._matrix = calibrated.correlation.correlations(rows, known)

    def between(self, first: Key, second: Key) -> float:
        """Return the correlation of two errors."""
        return float(self._matrix[self._place[first], self._place[second]])

    def draw(self, estimates: Sequence[tuple[int, Estimate]], count: int, seed: int = 0) -> np.ndarray:
        """Return draws of the scores of estimates with the lines of their machines, (count, estimates).

        The errors have a normal copula with the correlations; each has the spread of its interval, and otherwise the
        distribution of the scores of backtests.
        """
        places = [self._place[line, each.task, each.target] for line, each in estimates]
        values, vectors = np.linalg.eigh(self._matrix[np.ix_(places, places)])
        normal = np.random.default_rng(seed).standard_normal((count, len(places)))
        correlated = normal @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        levels = np.vectorize(lambda value: erf(value / _ROOT))(correlated)  # from -1 to 1
        return np.column_stack([self._scores(levels[:, place], each) for place, (_, each) in enumerate(estimates)])

    def _scores(self, levels: np.ndarray, estimate: Estimate) -> np.ndarray:
        scores = error_quantiles(estimate, self._champion)
        if scores is None or estimate.low is None or estimate.high is None:
            return np.full(len(levels), estimate.median)
        grid = np.linspace(0.0, 1.0, len(scores))
        sizes = np.interp(np.abs(levels), grid, scores) / np.interp(estimate.level, grid, scores)
        below, above = np.log(estimate.low / estimate.median), np.log(estimate.high / estimate.median)
        return np.asarray(estimate.median * np.exp(sizes * np.where(levels < 0, below, above)), dtype=float)
