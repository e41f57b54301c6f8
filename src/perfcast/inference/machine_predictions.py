"""Predictions of completed machines: medians over the kinds that a machine may be, and intervals."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property, reduce

import numpy as np
import pandas as pd

from perfcast.inference.cells import ASSUMED, GIVEN, IMPLIED, Cells, CompletedMachines, mask_cells
from perfcast.inference.champion import Champion
from perfcast.inference.donors import DONORS
from perfcast.inference.imputation import MAX_KINDS, ImputedMachines, impute_machines
from perfcast.inference.parse import ParsedMachines
from perfcast.inference.prediction import Assumption
from perfcast.inference.typical import change_setups
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import LEVEL
from perfcast.uncertainty.levels import ErrorRows, outputs_of
from perfcast.uncertainty.mixture import mixture_quantiles, weighted_medians

_MIN_SPREAD = 5e-4
"""Smallest spread of an assumption that is shown."""


class MachinePredictions:
    """Predictions of a batch of completed machines.

    Shapes: `medians` (machines by task, targets), NaN where `has_output` is false. `completed` and `table` have one
    row per machine and task; of a machine that may be of several kinds, the kind whose predictions are nearest to the
    medians. `lowest` and `highest` (machines by task,) are the possible results. `impossible` has by row why a machine
    cannot do its task. `says_more` marks the given cells that are not the usual ones, (machines by task, columns) bool.
    `months` (machines by task,) are those of the measurements.
    """

    def __init__(self, imputed: ImputedMachines, champion: Champion) -> None:
        self._imputed, self._champion = imputed, champion
        owners, count = imputed.owners, len(imputed.owners)
        self._first = np.searchsorted(owners, np.arange(owners[-1] + 1)) if len(owners) else np.zeros(0, dtype=int)
        # what is known of a machine is the same in all of its kinds; its features are derived with theirs
        self._cleared = imputed.completed.take(self._first)
        unusual = _clear_assumed(self._cleared, champion, usual=imputed.usual[self._first])
        derived = champion.derive_columns(imputed.completed.cells.append(unusual))
        completed = champion.add_estimates(replace(derived, frame=derived.frame.iloc[:count]))
        X = completed.frame

        def predict(cells: Cells) -> np.ndarray:
            if cells is not imputed.completed.cells:
                return champion.predict_logs(cells)
            return np.asarray(np.log(champion.predictor.predict(X).to_numpy(dtype=float)))

        limits = champion.rules.limits
        lowest, highest = limits.find_bounds(imputed.completed.cells)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = limits.predict_logs(imputed.completed.cells, predict)
            logs -= limits.find_deductions(imputed.completed.cells, champion.measured_kinds)[:, None]
            self._logs = np.clip(logs, np.log(lowest)[:, None], np.log(highest)[:, None])
        self.lowest = np.minimum.reduceat(lowest, self._first) if len(owners) else lowest
        self.highest = np.maximum.reduceat(highest, self._first) if len(owners) else highest
        self._log_medians = np.column_stack(
            [weighted_medians(column, owners, imputed.weights) for column in self._logs.T]
        )
        self.medians = np.exp(self._log_medians)
        self.has_output = champion.predictor.requested_outputs(X)[self._first]
        shown = self._choose_kinds()
        self.completed = imputed.completed.take(shown)
        self.says_more = self.completed.has_origin(GIVEN) & ~imputed.usual[shown]
        self.impossible = limits.find_impossible(self.completed.cells)
        frame = X.iloc[shown].reset_index(drop=True)
        self.months = pd.Series(imputed.months[shown], frame.index)
        self.table = replace(completed, frame=frame)
        self._usual = _differs(derived.frame, np.arange(count, len(derived.frame)), shown, X.columns)

    @cached_property
    def unknown(self) -> pd.DataFrame:
        """The cells of `table` that are missing or follow from assumed ones, (machines by task, columns) bool."""
        known = _clear_assumed(self._cleared, self._champion)
        frame = self._champion.derive_columns(self.completed.cells.append(known)).frame
        rows = np.arange(len(self.months))
        return _differs(frame, len(rows) + rows, rows, self.table.frame.columns)

    def _choose_kinds(self) -> np.ndarray:
        """Return the row of every machine by task to show: all tasks of a machine show the same kind."""
        owners = self._imputed.owners
        first_target = self.has_output.argmax(axis=1)
        gaps = np.abs(self._logs - self._log_medians[owners])
        gaps = np.nan_to_num(np.take_along_axis(gaps, first_target[owners, None], axis=1).ravel())
        machines = np.unique(self._imputed.completed.cells.index, return_inverse=True)[1]
        kinds = np.arange(len(owners)) - self._first[owners]
        sums = np.bincount(machines * MAX_KINDS + kinds, gaps)
        order = np.lexsort((sums[machines * MAX_KINDS + kinds], owners))
        return np.asarray(order[self._first])

    @cached_property
    def encoded(self) -> np.ndarray:
        """The rows of `table` as distances read them, see `InDomainModel.encode`; none without a calibration."""
        calibrated = self._champion.calibrated
        return (
            np.zeros((len(self.table.frame), 0))
            if calibrated is None
            else calibrated.in_domain.encode(self.table.frame)
        )

    @cached_property
    def levels(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """By target: what results after training add to the logarithms, and their factor of the widths, (n,) each."""
        known = self._champion.calibrated.known if self._champion.calibrated else None
        targets, count, table = self._champion.predictor.targets_, len(self.table.frame), self.table
        if known is None or not len(known.errors):
            return [(np.zeros(count), np.ones(count))] * len(targets)
        tasks = table.frame[table.column_of(Tag.TASK)]
        return [known.predict(ErrorRows.of(table, outputs_of(tasks, target))) for target in targets]

    def intervals(self, target: int, level: float = LEVEL) -> pd.DataFrame | None:
        """Return the uncertainty of the predictions of a target, None without a calibration.

        Args: `target` is the number of the target.
        Returns: as `UncertaintyModel.intervals`, with `below` and `above` of the mixture, widened by the factor of the
        level of description less 1, times `half_width`, that of a single kind in logarithms. All kinds of a machine
        have the errors of the kind that is shown. What is assumed was measured on some machine: it adds no distance to
        the in-domain score, nor does a given value of a set-up that was measured, so what is typed back does not.
        """
        calibrated = self._champion.calibrated
        if calibrated is None:
            return None
        X, kinds = self.table.frame, self._imputed
        outputs = outputs_of(X[self.table.column_of(Tag.TASK)], self._champion.predictor.targets_[target])
        deviations = self._champion.predictor.predict_deviations(X)
        known = None if deviations is None else deviations[:, target]
        intervals = calibrated.intervals(
            X, outputs, self.months, level, self._usual, encoded=self.encoded, deviations=known
        )
        below, above = (intervals[name].to_numpy(dtype=float).copy() for name in ("below", "above"))
        half_width = (below + above) / 2
        several = (np.bincount(kinds.owners, minlength=len(X)) > 1) & self.has_output[:, target]
        if several.any():
            rows = several[kinds.owners]
            owners, errors = kinds.owners[rows], intervals["expected_error"].to_numpy()
            quantiles = mixture_quantiles(
                self._logs[rows, target],
                np.cumsum(several)[owners] - 1,
                kinds.weights[rows],
                errors=errors[owners],
                outputs=outputs[owners],
                scores=calibrated.calibration.quantiles,
                levels=((1 - level) / 2, (1 + level) / 2),
            )
            middle = self._log_medians[several, target]
            below[several] = middle - quantiles[:, 0]
            above[several] = quantiles[:, 1] - middle
        added = (self._find_scales() - 1) * half_width
        # at the upper end nothing is deducted
        above += self._champion.rules.limits.find_deductions(self.completed.cells, self._champion.measured_kinds)
        ends = {"below": np.maximum(below + added, 1e-9), "above": np.maximum(above + added, 1e-9)}
        return intervals.assign(**ends, half_width=half_width)

    def take_kinds(self, rows: Sequence[int]) -> CompletedMachines:
        """Return the machines of some rows as every kind that they may be."""
        return self._imputed.completed.take(np.flatnonzero(np.isin(self._imputed.owners, rows)))

    def rank_assumptions(self, rows: Sequence[int]) -> tuple[Assumption, ...]:
        """Return the fields whose values, assumed in all of some rows, change the predictions, most first.

        They are changed to the values that donors have.
        """
        champion, shown = self._champion, self.completed.take(np.asarray(rows, dtype=int))
        others = change_setups(shown, champion)
        if others is None:
            return ()
        repeated = shown.take(np.repeat(np.arange(len(shown.codes)), DONORS))
        fields: dict[str, list[str]] = {}
        for name, is_assumed in zip(shown.cells, np.logical_and.reduce(shown.has_origin(ASSUMED)), strict=True):
            if is_assumed and (repeated.cells[name] != others[name]).any():
                fields.setdefault(champion.fields.name_of(name), []).append(name)
        if not fields:
            return ()
        implied = repeated.has_origin(IMPLIED)
        known = {name: mask_cells(repeated.cells[name], implied[:, place]) for name, place in shown.places.items()}
        changed = [
            champion.rules.typical_values.fill_implied(
                repeated.cells.assign(known | {name: others[name] for name in names})
            )
            for names in fields.values()
        ]
        logs = champion.rules.limits.predict_logs(reduce(Cells.append, changed), champion.predict_logs)
        spreads = logs.reshape(len(fields), len(shown.codes), DONORS, -1).std(axis=2)
        largest = np.nanmax(spreads, axis=(1, 2), initial=0.0).tolist()
        ranked = [Assumption(name, tuple(fields[name]), spread) for name, spread in zip(fields, largest, strict=True)]
        return tuple(sorted((each for each in ranked if each.spread >= _MIN_SPREAD), key=lambda each: -each.spread))

    def _find_scales(self) -> np.ndarray:
        """Return the factor of the half-width of every machine, by its level of description, (machines by task,)."""
        calibrated, levels = self._champion.calibrated, self._champion.description_levels
        count = len(self.completed.codes)
        if calibrated is None or not calibrated.scales or not levels:
            return np.ones(count)
        levels = levels[-len(calibrated.scales) :]  # an older champion has no scale of the lowest ones
        return np.asarray(np.array(calibrated.scales)[self.find_levels(levels) - 1])

    def find_levels(self, levels: Sequence[Collection[str]]) -> np.ndarray:
        """Return the level of description of every machine, from 1: a given value that is usual does not count."""
        names = np.array(list(self.completed.cells), dtype=object)
        level_of: dict[bytes, int] = {}
        for pattern in self.says_more:
            if pattern.tobytes() not in level_of:
                level_of[pattern.tobytes()] = find_level(names[pattern].tolist(), levels)
        return np.array([level_of[pattern.tobytes()] for pattern in self.says_more], dtype=int)


def complete_machines(machines: ParsedMachines, champion: Champion, *, assume: bool = True) -> CompletedMachines:
    """Return machines by task with their missing cells as a prediction shows them."""
    return MachinePredictions(impute_machines(machines, champion, assume=assume), champion).completed


def _clear_assumed(completed: CompletedMachines, champion: Champion, *, usual: np.ndarray | None = None) -> Cells:
    """Return machines without their assumed cells: implied ones are filled anew from what is known.

    With the `usual` given cells, (n, columns) bool, these are cleared as well, and those that could have been assumed:
    see `find_measured`.
    """
    cells, places, typical_values = completed.cells, completed.places, champion.rules.typical_values
    cleared, joint = completed.has_origin(ASSUMED, IMPLIED), typical_values.joint
    if usual is not None and joint is not None:
        cleared |= usual
        given = completed.has_origin(GIVEN)
        assumable = (*joint.taken, *typical_values.block_columns)
        names = [name for name in dict.fromkeys(assumable) if name in places and given[:, places[name]].any()]
        for name, rows in champion.reference_data.find_measured(cells, names).items():
            bounds = (*joint.at_most.get(name, ()), *([joint.launch] if name in joint.dates else []))
            at_bound = [cells[name] == cells[bound] for bound in bounds if bound in cells]
            cleared[:, places[name]] |= given[:, places[name]] & np.logical_or.reduce([rows, *at_bound])
    masks = {name: cleared[:, place] for name, place in places.items() if cleared[:, place].any()}
    return typical_values.fill_implied(
        cells.assign({name: mask_cells(cells[name], mask) for name, mask in masks.items()})
    )


def _differs(frame: pd.DataFrame, known: np.ndarray, shown: np.ndarray, names: pd.Index) -> pd.DataFrame:
    """Return which cells of the known rows are missing, or differ from those of the shown ones, (n, names) bool.

    Args: `names` are the columns of the frame, and after them estimates of the base, which rest on all other cells.
    """
    is_number = np.array([dtype == np.float64 for dtype in frame.dtypes])
    unknown = np.empty((len(known), len(names)), dtype=bool)
    numbers = frame.loc[:, is_number].to_numpy()
    columns = unknown[:, : len(is_number)]
    # a missing number equals nothing
    columns[:, is_number] = numbers[known] != numbers[shown]
    for place in np.flatnonzero(~is_number).tolist():
        values = frame[frame.columns[place]].array
        if isinstance(values, pd.Categorical):
            before, after = values.codes[known], values.codes[shown]
            columns[:, place] = (before != after) | (before < 0)
        else:
            columns[:, place] = np.asarray(values[known] != values[shown]) | values[known].isna()
    unknown[:, len(is_number) :] = columns.any(axis=1, keepdims=True)
    return pd.DataFrame(unknown, columns=names)


def find_level(given: Collection[str], levels: Sequence[Collection[str]]) -> int:
    """Return the number, from 1, of the level whose columns agree best with the given ones.

    Agreement is Jaccard's index: columns in both over columns in either. The lower level wins a tie.
    """
    wanted = set(given)
    agreement = [len(wanted & set(columns)) / len(wanted | set(columns)) for columns in levels]
    return 1 + agreement.index(max(agreement))
