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
        lines = drawn.completed.frame.index.tolist()
        targets = champion.predictor.targets_
        self._place: dict[Key, int] = {
            (int(line), str(task), target): number * len(lines) + row
            for number, target in enumerate(targets)
            for row, (line, task) in enumerate(zip(lines, tasks, strict=True))
        }
        self._matrix = np.eye(len(self._place))
        calibrated = champion.calibrated
        if calibrated is None or calibrated.correlation is None:
            return
        when = None if options.when is None else pd.Series(options.when, index=table.frame.index)
        outputs = [outputs_of(tasks, target) for target in targets]
        expected = [calibrated.intervals(table.frame, each, when)["expected_error"].to_numpy() for each in outputs]
        labels = pd.concat([shared_labels(table)] * len(targets), ignore_index=True)
        rows = ErrorRows(labels, np.concatenate(outputs), np.concatenate(expected))
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
        matrix = self._matrix[np.ix_(places, places)]
        values, vectors = np.linalg.eigh(matrix)
        normal = np.random.default_rng(seed).standard_normal((count, len(places)))
        correlated = normal @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        levels = np.vectorize(lambda value: erf(value / _ROOT))(correlated)  # from -1 to 1
        columns = [self._scores(levels[:, place], each) for place, (_, each) in enumerate(estimates)]
        return np.column_stack(columns)

    def _scores(self, levels: np.ndarray, estimate: Estimate) -> np.ndarray:
        calibrated = self._champion.calibrated
        if calibrated is None or estimate.low is None or estimate.high is None:
            return np.full(len(levels), estimate.median)
        quantiles = calibrated.calibration.quantiles
        output = str(outputs_of(pd.Series([estimate.task]), estimate.target)[0])
        scores = np.asarray(quantiles.get(output, quantiles[""]), dtype=float)
        grid = np.linspace(0.0, 1.0, len(scores))
        sizes = np.interp(np.abs(levels), grid, scores) / np.interp(estimate.level, grid, scores)
        distances = np.where(
            levels < 0, np.log(estimate.low / estimate.median), np.log(estimate.high / estimate.median)
        )
        return np.asarray(estimate.median * np.exp(sizes * distances), dtype=float)
