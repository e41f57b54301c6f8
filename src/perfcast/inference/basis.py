"""Basis of an answer: its data and facts with their dates, its errors in backtests, and a way to check it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.draw_predictions import DrawPredictions
from perfcast.inference.prediction import MEASURED_FACTOR, BacktestError, Basis, Move
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import outputs_of
from perfcast.uncertainty.correlation import ErrorRows, shared_labels

_NOTHING = 1 - 1e-6
"""Remaining width from which a measured result tells nothing about the others."""
_MAX_OUTPUTS = 16
"""Outputs of a machine up to which the most useful measurement is searched."""


class BasisFinder:
    """Bases of a batch of predicted machines; `when` is the month of the measurement."""

    def __init__(self, predicted: DrawPredictions, champion: Champion, when: pd.Timestamp | None) -> None:
        self._champion, self._predicted = champion, predicted
        measured = champion.reference_data.measured
        times = measured.select(tag=Tag.TIME)
        newest = measured.frame[times[0]].max() if times else pd.NaT
        self._until = "" if pd.isna(newest) else f"{newest:%Y-%m}"
        self._count = len(measured.frame)
        if champion.calibrated is not None:
            X = predicted.table.frame
            months = None if when is None else pd.Series(when, index=X.index)
            calibration, distances = champion.calibrated.calibration, champion.calibrated.in_domain.distances(X, months)
            self._expected = calibration.expected_error(distances)
            self._labels = shared_labels(predicted.table)
            tasks = X[predicted.table.column_of(Tag.TASK)]
            self._outputs_of = [outputs_of(tasks, target) for target in champion.predictor.targets_]
            self._sizes = [
                [np.expm1(calibration.half_widths(outputs, distances, level)) for level in (0.5, 0.9)]
                for outputs in self._outputs_of
            ]
        self._tasks = predicted.completed.cells[measured.column_of(Tag.TASK)].tolist()

    def find(self, rows: list[int]) -> Basis:
        """Return the basis of the machine that has some rows, one for each task."""
        champion, completed = self._champion, self._predicted.completed
        cells = [
            {name: np.nan if values[row] is None else values[row] for name, values in completed.cells.items()}
            for row in rows
        ]
        checks = [
            champion.rules.describe_check(self._tasks[row], known) for row, known in zip(rows, cells, strict=True)
        ]
        measured_task, moves = self._find_moves(rows)
        return Basis(
            measured_results=self._count,
            trained_until=self._until,
            errors=self._find_errors(rows),
            facts=champion.rules.list_fact_sources(
                cells[0], champion.reference_data.entity_facts, champion.reference_data.user_facts
            ),
            checks=tuple(check for check in checks if check is not None),
            measured_task=measured_task,
            moves=moves,
        )

    def _outputs(self, rows: list[int]) -> list[tuple[int, int]]:
        """Return the rows and the numbers of the targets that have predictions."""
        return [(row, number) for row in rows for number in np.flatnonzero(self._predicted.has_output[row]).tolist()]

    def _find_errors(self, rows: list[int]) -> tuple[BacktestError, ...]:
        if self._champion.calibrated is None:
            return ()
        targets = self._champion.predictor.targets_
        return tuple(
            BacktestError(self._tasks[row], targets[number], *(float(size[row]) for size in self._sizes[number]))
            for row, number in self._outputs(rows)
        )

    def _find_moves(self, rows: list[int]) -> tuple[str, tuple[Move, ...]]:
        """Return the task whose score narrows the others most, and what it does to them."""
        calibrated, wanted = self._champion.calibrated, self._outputs(rows)
        if calibrated is None or calibrated.correlation is None or not 2 <= len(wanted) <= _MAX_OUTPUTS:
            return "", ()
        places = [row for row, _ in wanted]
        outputs = np.array([self._outputs_of[number][row] for row, number in wanted])
        errors = ErrorRows(self._labels.iloc[places], outputs, self._expected[places])
        correlation = calibrated.correlation
        covariances, variances = correlation.covariance(errors, errors), correlation.variance(errors)
        best: tuple[float, int, np.ndarray, np.ndarray] | None = None
        for number in range(len(wanted)):
            # as `ErrorCorrelation.predict`, for one known error
            across = np.delete(covariances[number], number)
            weights = across / (covariances[number, number] + correlation.noise)
            widths = np.sqrt(np.maximum(1 - weights * across / np.delete(variances, number), 0.0))
            if best is None or widths.mean() < best[0]:
                best = float(widths.mean()), number, weights * np.log(MEASURED_FACTOR), widths
        if best is None or best[0] > _NOTHING:
            return "", ()
        _, number, shifts, widths = best
        targets = self._champion.predictor.targets_
        remaining = [pair for place, pair in enumerate(wanted) if place != number]
        moves = [
            Move(self._tasks[row], targets[place], float(np.exp(shift)), float(width))
            for (row, place), shift, width in zip(remaining, shifts, widths, strict=True)
        ]
        return self._tasks[wanted[number][0]], tuple(moves)
