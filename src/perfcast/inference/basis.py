"""Basis of an answer: its data and facts with their dates, its errors in backtests, and a way to check it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.draw_predictions import DrawPredictions
from perfcast.inference.imputation.rules import Check, FactSource
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import outputs_of
from perfcast.uncertainty.correlation import ErrorRows, shared_labels

MEASURED_FACTOR = 1.1
"""Measured score over its prediction, in the example of how one result moves the others."""
_NOTHING = 1 - 1e-6
"""Remaining width from which a measured result tells nothing about the others."""
_MAX_OUTPUTS = 16
"""Outputs of a machine up to which the most useful measurement is searched."""


@dataclass(frozen=True)
class BacktestError:
    """Errors of an output in backtests, at the distance of the machine: half and nine tenths of them are smaller.

    Units: `median` and `p90` shares, 0.05 is 5 %.
    """

    task: str
    target: str
    median: float
    p90: float


@dataclass(frozen=True)
class Move:
    """Change of another prediction by one measured score, which is `MEASURED_FACTOR` times its prediction.

    `factor` multiplies the estimate; `width` is the share of its interval's width, in logarithms, that remains.
    """

    task: str
    target: str
    factor: float
    width: float


@dataclass(frozen=True)
class Basis:
    """Basis of the estimates of one machine.

    `trained_until` is the month of the newest of the `measured_results` of training, "" without dates. `moves` are
    those by a result of `measured_task`, the one that narrows the other intervals most.
    """

    measured_results: int
    trained_until: str
    errors: tuple[BacktestError, ...] = ()
    facts: tuple[FactSource, ...] = ()
    checks: tuple[Check, ...] = ()
    measured_task: str = ""
    moves: tuple[Move, ...] = ()


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
            self._distances = champion.calibrated.in_domain.distances(X, months)
            self._labels = shared_labels(predicted.table)

    def find(self, rows: list[int]) -> Basis:
        """Return the basis of the machine that has some rows, one for each task."""
        champion, frame = self._champion, self._predicted.completed.frame
        measured = champion.reference_data.measured
        cells = [{str(name): cell for name, cell in frame.iloc[row].items()} for row in rows]
        tasks = frame[measured.column_of(Tag.TASK)].astype(str)
        checks = [champion.rules.describe_check(tasks.iloc[row], known) for row, known in zip(rows, cells, strict=True)]
        measured_task, moves = self._find_moves(rows)
        return Basis(
            measured_results=self._count,
            trained_until=self._until,
            errors=self._find_errors(rows),
            facts=champion.rules.list_fact_sources(
                cells[0], champion.reference_data.cpu_facts, champion.reference_data.user_facts
            ),
            checks=tuple(check for check in checks if check is not None),
            measured_task=measured_task,
            moves=moves,
        )

    def _outputs(self, rows: list[int]) -> list[tuple[int, str]]:
        """Return the rows and targets that have predictions."""
        has_output, targets = self._predicted.has_output, self._champion.predictor.targets_
        return [(row, targets[number]) for row in rows for number in np.flatnonzero(has_output[row])]

    def _task(self, row: int) -> str:
        table = self._predicted.table
        return str(table.frame[table.column_of(Tag.TASK)].iloc[row])

    def _find_errors(self, rows: list[int]) -> tuple[BacktestError, ...]:
        calibrated = self._champion.calibrated
        if calibrated is None:
            return ()
        errors = []
        for row, target in self._outputs(rows):
            outputs, distances = outputs_of(pd.Series([self._task(row)]), target), self._distances.iloc[[row]]
            sizes = [calibrated.calibration.half_widths(outputs, distances, level)[0] for level in (0.5, 0.9)]
            errors.append(BacktestError(self._task(row), target, *(float(np.expm1(size)) for size in sizes)))
        return tuple(errors)

    def _find_moves(self, rows: list[int]) -> tuple[str, tuple[Move, ...]]:
        """Return the task whose score narrows the others most, and what it does to them."""
        calibrated, wanted = self._champion.calibrated, self._outputs(rows)
        if calibrated is None or calibrated.correlation is None or not 2 <= len(wanted) <= _MAX_OUTPUTS:
            return "", ()
        places = [row for row, _ in wanted]
        outputs = np.concatenate([outputs_of(pd.Series([self._task(row)]), target) for row, target in wanted])
        expected = calibrated.calibration.expected_error(self._distances.iloc[places])
        labels = self._labels.iloc[places]
        best: tuple[float, int, np.ndarray, np.ndarray] | None = None
        for number in range(len(wanted)):
            others = [other for other in range(len(wanted)) if other != number]
            known, unknown = (
                ErrorRows(labels.iloc[chosen], outputs[chosen], expected[chosen]) for chosen in ([number], others)
            )
            shifts, widths = calibrated.correlation.predict(known, np.log([MEASURED_FACTOR]), unknown)
            if best is None or widths.mean() < best[0]:
                best = float(widths.mean()), number, shifts, widths
        if best is None or best[0] > _NOTHING:
            return "", ()
        _, number, shifts, widths = best
        remaining = [pair for place, pair in enumerate(wanted) if place != number]
        moves = [
            Move(self._task(row), target, float(np.exp(shift)), float(width))
            for (row, target), shift, width in zip(remaining, shifts, widths, strict=True)
        ]
        return self._task(wanted[number][0]), tuple(moves)
