"""Predictions of partly described machines: the median over draws, and intervals of the mixture of their draws."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from perfcast.inference.batch import ParsedMachines
from perfcast.inference.cells import Cells
from perfcast.inference.champion import Champion
from perfcast.inference.completed import ASSUMED, GIVEN, IMPLIED, CompletedMachines
from perfcast.inference.impute import DrawnMachines, impute_draws
from perfcast.schema.table import Table, Tag
from perfcast.uncertainty.conformal import LEVEL, outputs_of
from perfcast.uncertainty.mixture import mixture_quantiles, weighted_medians


class DrawPredictions:
    """Predictions of a batch of drawn machines.

    Shapes: `medians` (machines by task, targets), NaN where `has_output` is false. `completed` and `table` have the
    draw of every machine to show: that whose prediction of the first target is nearest to the median, among those of
    the donor that is nearest in all tasks. `lowest` and `highest` (machines by task,) are the possible results.
    `unknown` marks the cells of `table` that are missing or follow from assumed ones, (machines by task, columns) bool.
    """

    def __init__(self, drawn: DrawnMachines, champion: Champion) -> None:
        self._drawn, self._champion = drawn, champion
        owners, count = drawn.owners, len(drawn.owners)
        self._first = np.searchsorted(owners, np.arange(owners[-1] + 1)) if len(owners) else np.zeros(0, dtype=int)
        # what is known of a machine is the same in all of its draws; its features are derived with theirs
        first = drawn.completed.take(self._first)
        known, unusual = _clear_assumed(first, champion), _clear_assumed(first, champion, measured=True)
        both = champion.derive_features(drawn.completed.cells.append(known).append(unusual))
        X = both.frame.iloc[:count]

        def predict(cells: Cells) -> np.ndarray:
            frame = X if cells is drawn.completed.cells else champion.derive_features(cells).frame
            return np.asarray(np.log(champion.predictor.predict(frame).to_numpy(dtype=float)))

        lowest, highest = champion.rules.find_bounds(drawn.completed.cells)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = champion.rules.predict_logs(drawn.completed.cells, predict)
            logs -= champion.find_deductions(drawn.completed.cells)[:, None]
            self._logs = np.clip(logs, np.log(lowest)[:, None], np.log(highest)[:, None])
        self.lowest = np.minimum.reduceat(lowest, self._first) if len(owners) else lowest
        self.highest = np.maximum.reduceat(highest, self._first) if len(owners) else highest
        logs = np.column_stack([weighted_medians(column, owners, drawn.weights) for column in self._logs.T])
        self.medians = np.exp(logs)
        self._log_medians = logs
        self.has_output = champion.predictor.requested_outputs(X)[self._first]
        first_target = self.has_output.argmax(axis=1)
        gaps = np.abs(np.take_along_axis(self._logs - logs[owners], first_target[owners, None], axis=1).ravel())
        machines = np.unique(drawn.completed.cells.index[self._first], return_inverse=True)[1]
        is_nearest = _find_nearest(gaps, owners, machines[owners], drawn.shared)
        shown = np.lexsort((gaps, ~is_nearest, owners))[self._first]
        self.completed = drawn.completed.take(shown)
        frame = both.frame.iloc[shown].reset_index(drop=True)
        self.table = Table(both.dataset, frame, both.columns, both.facts)
        self.unknown, self._usual = (
            _differs(both.frame, begin + np.arange(len(shown)), shown) for begin in (count, count + len(shown))
        )

    def intervals(self, target: int, when: pd.Series | None = None, level: float = LEVEL) -> pd.DataFrame | None:
        """Return the uncertainty of the predictions of a target, None without a calibration.

        Args: `target` is the number of the target, `when` the months of the measurements, index as `table.frame`.
        Returns: as `UncertaintyModel.intervals`, with `below` and `above` of the mixture, widened by the factor of the
        level of description less 1, times `half_width`, that of a single draw in logarithms. All draws of a machine
        have the errors of the draw that is shown. What is assumed was measured on some machine: it adds no distance to
        the in-domain score, nor does a given value of a set-up that was measured, so what is typed back does not.
        """
        calibrated = self._champion.calibrated
        if calibrated is None:
            return None
        X, drawn = self.table.frame, self._drawn
        outputs = outputs_of(X[self.table.column_of(Tag.TASK)], self._champion.predictor.targets_[target])
        intervals = calibrated.intervals(X, outputs, when, level, self._usual)
        below, above = (intervals[name].to_numpy(dtype=float).copy() for name in ("below", "above"))
        half_width = (below + above) / 2
        counts = np.bincount(drawn.owners, minlength=len(X))
        several = (counts > 1) & self.has_output[:, target]
        if several.any():
            rows = several[drawn.owners]
            owners = np.cumsum(several)[drawn.owners[rows]] - 1
            errors = intervals["expected_error"].to_numpy()[drawn.owners[rows]]
            quantiles = mixture_quantiles(
                self._logs[rows, target],
                owners,
                drawn.weights[rows],
                errors=errors,
                outputs=outputs[drawn.owners[rows]],
                scores=calibrated.calibration.quantiles,
                levels=((1 - level) / 2, (1 + level) / 2),
            )
            middle = self._log_medians[several, target]
            below[several] = middle - quantiles[:, 0]
            above[several] = quantiles[:, 1] - middle
        added = (self._find_scales() - 1) * half_width
        above += self._champion.find_deductions(self.completed.cells)  # at the upper end nothing is deducted
        ends = {"below": np.maximum(below + added, 1e-9), "above": np.maximum(above + added, 1e-9)}
        return intervals.assign(**ends, half_width=half_width)

    def _find_scales(self) -> np.ndarray:
        """Return the factor of the half-width of every machine, by its level of description, (machines by task,)."""
        calibrated, levels = self._champion.calibrated, self._champion.description_levels
        count = len(self.completed.codes)
        if calibrated is None or not calibrated.scales or not levels:
            return np.ones(count)
        levels = levels[-len(calibrated.scales) :]  # an older champion has no scale of the lowest ones
        names = np.array(list(self.completed.cells), dtype=object)
        by_pattern: dict[bytes, float] = {}
        scales = np.empty(count)
        for row, given in enumerate(self.completed.has_origin(GIVEN)):
            pattern = given.tobytes()
            if pattern not in by_pattern:
                by_pattern[pattern] = calibrated.scales[find_level(names[given].tolist(), levels) - 1]
            scales[row] = by_pattern[pattern]
        return scales


def complete_machines(machines: ParsedMachines, champion: Champion, *, assume: bool = True) -> CompletedMachines:
    """Return machines by task with the missing cells of the draw that a prediction shows. Raises: see `impute`."""
    return DrawPredictions(impute_draws(machines, champion, assume=assume), champion).completed


def _clear_assumed(completed: CompletedMachines, champion: Champion, *, measured: bool = False) -> Cells:
    """Return machines without their assumed cells: implied ones are filled anew from what is known.

    With `measured`, given cells are cleared as well where they could have been assumed: see `find_measured`.
    """
    cleared, joint = completed.has_origin(ASSUMED, IMPLIED), champion.rules.joint
    if measured and joint is not None:
        given, places = completed.has_origin(GIVEN), {name: place for place, name in enumerate(completed.cells)}
        assumable = (*joint.taken, *(name for block in champion.rules.blocks for name in block.columns))
        names = [name for name in dict.fromkeys(assumable) if name in places and given[:, places[name]].any()]
        for name, rows in champion.reference_data.find_measured(completed.cells, names).items():
            bounds = (*joint.at_most.get(name, ()), *([joint.launch] if name in joint.dates else []))
            at_bound = [completed.cells[name] == completed.cells[bound] for bound in bounds]
            cleared[:, places[name]] |= given[:, places[name]] & np.logical_or.reduce([rows, *at_bound])
    return champion.rules.fill_implied(completed.clear(cleared))


def _find_nearest(gaps: np.ndarray, owners: np.ndarray, machines: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return which draws have the donor whose nearest draws of all tasks of a machine have the smallest sum of gaps.

    A donor without a draw of some task comes after those with one. Shapes: (k,) each.
    """
    if not len(gaps):
        return np.zeros(0, dtype=bool)
    _, numbers = np.unique(np.column_stack([machines, shared]), axis=0, return_inverse=True)
    numbers = numbers.ravel()
    order = np.lexsort((gaps, owners, numbers))
    is_first = np.append(True, (np.diff(numbers[order]) != 0) | (np.diff(owners[order]) != 0))
    first = order[is_first]
    sums, counts = np.bincount(numbers[first], gaps[first]), np.bincount(numbers[first])
    machine_of = np.zeros(len(sums), dtype=int)
    machine_of[numbers] = machines
    ranked = np.lexsort((sums, -counts, machine_of))
    chosen = ranked[np.append(True, np.diff(machine_of[ranked]) != 0)]
    return np.asarray(np.isin(numbers, chosen))


def _differs(frame: pd.DataFrame, known: np.ndarray, shown: np.ndarray) -> pd.DataFrame:
    """Return which cells of the known rows are missing, or differ from those of the shown ones, (n, columns) bool."""
    is_number = np.array([dtype == np.float64 for dtype in frame.dtypes])
    unknown = np.empty((len(known), frame.shape[1]), dtype=bool)
    numbers = frame.loc[:, is_number].to_numpy()
    # a missing number equals nothing
    unknown[:, is_number] = numbers[known] != numbers[shown]
    for place in np.flatnonzero(~is_number).tolist():
        values = frame[frame.columns[place]].array
        if isinstance(values, pd.Categorical):
            before, differs = values.codes[known], values.codes[known] != values.codes[shown]
            unknown[:, place] = differs | (before < 0)
        else:
            unknown[:, place] = np.asarray(values[known] != values[shown]) | values[known].isna()
    return pd.DataFrame(unknown, columns=frame.columns)


def find_level(given: Collection[str], levels: Sequence[Collection[str]]) -> int:
    """Return the number, from 1, of the level whose columns agree best with the given ones.

    Agreement is Jaccard's index: columns in both over columns in either. The lower level wins a tie.
    """
    wanted = set(given)
    agreement = [len(wanted & set(columns)) / len(wanted | set(columns)) for columns in levels]
    return 1 + agreement.index(max(agreement))
