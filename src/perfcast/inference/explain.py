"""Explain predictions: nearest results, values with origins, Shapley values of feature groups, and the basis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.cells import ASSUMED, GIVEN, MISSING, ORIGINS, Cells, CompletedMachines
from perfcast.inference.champion import Champion
from perfcast.inference.machine_fields import name_group
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.inference.measured_index import PublishedRows, describe_outside
from perfcast.inference.prediction import MEASURED_FACTOR, BacktestError, Basis, Driver, Move, Neighbor, Value
from perfcast.inference.rules.description_rules import find_rules
from perfcast.schema.table import Kind, Role, Table, Tag
from perfcast.uncertainty.levels import ErrorRows, outputs_of, shared_labels

_HIDDEN_ROLES = (Role.TARGET, Role.PROVENANCE)
_MIN_CHANGE = 5e-4
"""Smallest change of the logarithm that is shown."""


_NOTHING = 1 - 1e-6
"""Remaining width from which a measured result tells nothing about the others."""
_MAX_OUTPUTS = 16
"""Outputs of a machine up to which the most useful measurement is searched."""


class Explainer:
    """Explanations of a batch of predictions: measured results near a machine, its values, its drivers, and its basis.

    Args: `neighbors` is the number of measured results of each task, `explain` whether values and bases are wanted,
    `drivers` whether these and typical machines are. Assumptions of machines whose keys are in `ranked` are not ranked:
    another champion has ranked the same.
    """

    ranked: Collection[int] = ()

    def __init__(
        self,
        predicted: MachinePredictions,
        champion: Champion,
        *,
        neighbors: int,
        explain: bool,
        drivers: bool,
    ) -> None:
        self._predicted, self._completed, self._champion = predicted, predicted.completed, champion
        self._explains, self._drives = explain, drivers
        self._neighbors = find_neighbors(predicted, champion, neighbors)
        cells, completed = predicted.completed.cells, predicted.completed
        given = completed.has_origin(GIVEN)
        is_setup = np.isin(list(cells), champion.rules.presentation.setup_columns)
        # with what the user gave, with the software that is shown, with any software
        self._published_rows = self._alike_rows = self._find_published(given)
        self._same_rows = self._find_published(given | is_setup)
        if given[:, is_setup].any():
            self._alike_rows = self._find_published(given & ~is_setup)
        self._tasks = cells[champion.task].tolist()
        if drivers:
            self._typical_rows = [champion.typical_rows[str(name)] for name in self._tasks]
            usual = {name: champion.reference_data.column(name)[self._typical_rows] for name in cells}
            self._shares, self._groups = attribute_difference(cells, Cells(usual, cells.index), champion)
        if explain and champion.calibrated is not None:
            X, calibration = predicted.table.frame, champion.calibrated.calibration
            distances = champion.calibrated.in_domain.distances(X, predicted.months, encoded=predicted.encoded)
            tasks = X[predicted.table.column_of(Tag.TASK)]
            self._outputs_of = [outputs_of(tasks, target) for target in champion.predictor.targets_]
            self._sizes = [
                [np.expm1(calibration.half_widths(outputs, distances, level)) for level in (0.5, 0.9)]
                for outputs in self._outputs_of
            ]

    @cached_property
    def _own_rows(self) -> list[PublishedRows]:
        # what is typed as it would have been assumed changes no answer
        return self._find_published(self._predicted.says_more)

    def _find_published(self, compared: np.ndarray) -> list[PublishedRows]:
        """Return the measured rows of every machine that are nearest to it in some cells, see `find_rows`."""
        known = ~self._completed.has_origin(ASSUMED, MISSING)
        return self._champion.published_index.find_rows(self._completed.cells, compared, known)

    def explain(self, row: int, target: str, low: float | None, high: float | None) -> dict[str, Any]:
        """Return the fields of an `Estimate`, with the interval from `low` to `high`, that explain it."""
        near = [describe_neighbor(self._champion, *neighbor, target) for neighbor in self._neighbors[row]]
        published, same, alike = (
            self._champion.published_index.summarize(each[row], target)
            for each in (self._published_rows, self._same_rows, self._alike_rows)
        )
        explanation: dict[str, Any] = {"neighbors": tuple(near), "published": published}
        if low is not None and high is not None:
            # results of other software tell nothing of an estimate for this one
            exact = same if same and not same.differs else None
            alike = alike if alike and not alike.differs else None
            explanation["published_outside"] = describe_outside(exact, alike, low, high)
        if self._drives:
            number = self._champion.predictor.targets_.index(target)
            explanation["typical_machine"] = describe_neighbor(self._champion, self._typical_rows[row], 0.0, target)
            explanation["drivers"] = list_drivers(self._shares[row, :, number], self._groups)
        return explanation

    def moves_away(self, medians: np.ndarray, shift: np.ndarray, target: str) -> np.ndarray:
        """Return which shifts of the logarithms lead away from the published results of the machine, (n,) bool."""
        return np.asarray(self._find_gaps(medians, target) * shift < 0)

    def _find_gaps(self, medians: np.ndarray, target: str) -> np.ndarray:
        """Return log median of the published results of the machine - log estimate, (n,), NaN without any."""
        index = self._champion.published_index
        published = [index.summarize(match, target) for match in self._own_rows]
        measured = np.array([each.median if each and not each.differs else np.nan for each in published])
        return np.asarray(np.log(measured) - np.log(medians))

    def find_later(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what results after training add to the logarithms of a target, and their factor of the widths.

        Results of other entities move no estimate farther from the median of the machine's own published results.
        Shapes: (n,) each.
        """
        predicted, known = self._predicted, self._champion.calibrated.known if self._champion.calibrated else None
        shift, narrowing = predicted.levels[number]
        if known is None or not len(known.errors):
            return shift, narrowing
        target, frame = self._champion.predictor.targets_[number], predicted.table.frame
        outputs = outputs_of(frame[predicted.table.column_of(Tag.TASK)], target)
        later = {*zip(known.rows.labels[self._champion.entity].astype(str), known.rows.outputs, strict=True)}
        pairs = zip(frame[self._champion.entity].astype(str), outputs, strict=True)
        is_free = np.array([pair in later for pair in pairs], dtype=bool)
        # twice the gap is as far on the other side
        ends = np.nan_to_num(2 * self._find_gaps(predicted.medians[:, number], target), nan=np.inf)
        low = np.where(is_free | np.isinf(ends), -np.inf, np.minimum(ends, 0.0))
        high = np.where(is_free, np.inf, np.maximum(ends, 0.0))
        return np.clip(shift, low, high), narrowing

    def describe(self, rows: Sequence[int]) -> dict[str, Any]:
        """Return the fields of a `Prediction` that name and explain a machine, which has these rows by task."""
        cells, measured = self._completed.cells, self._champion.reference_data.measured
        naming = (measured.column_of(Tag.ENTITY), *self._champion.rules.names.naming_columns)
        name = name_machine({name: cells[name][rows[0]] for name in naming if name in cells}, measured)
        if not self._explains:
            return {"machine": name}
        distinct = list(dict.fromkeys(rows))
        values = list_values(self._predicted.take_kinds(distinct), measured)
        return {"machine": name, "values": values, "basis": self._find_basis(distinct)}

    def _find_basis(self, rows: list[int]) -> Basis:
        """Return the basis of the machine that has some rows, one for each task."""
        champion, reference_data = self._champion, self._champion.reference_data
        cells = [
            {name: np.nan if values[row] is None else values[row] for name, values in self._completed.cells.items()}
            for row in rows
        ]
        shown = champion.rules.presentation
        checks = [shown.describe_check(self._tasks[row], known) for row, known in zip(rows, cells, strict=True)]
        outputs = [(row, number) for row in rows for number in np.flatnonzero(self._predicted.has_output[row]).tolist()]
        errors = [
            BacktestError(*self._name(output), *(float(size[output[0]]) for size in self._sizes[output[1]]))
            for output in (outputs if champion.calibrated is not None else ())
        ]
        is_ranked = self._completed.cells.index[rows[0]] in self.ranked
        measured_task, moves = self._find_moves(outputs)
        later = self._describe_later(outputs)
        measured = reference_data.measured
        newest = max((measured.frame[name].max() for name in measured.select(tag=Tag.TIME)[:1]), default=pd.NaT)
        return Basis(
            measured_results=len(measured.frame),
            trained_until="" if pd.isna(newest) else f"{newest:%Y-%m}",
            errors=tuple(errors),
            facts=shown.list_fact_sources(cells[0], reference_data.user_facts),
            checks=tuple(check for check in checks if check is not None),
            measured_task=measured_task,
            moves=moves,
            later_results=later,
            assumptions=() if is_ranked else self._predicted.rank_assumptions(rows),
        )

    def _describe_later(self, outputs: list[tuple[int, int]]) -> str:
        """Return what results after training did to the answers, "" without any."""
        known = self._champion.calibrated.known if self._champion.calibrated else None
        if known is None or known.months is None or not len(known.months):
            return ""
        later = {number: self.find_later(number)[0] for _, number in outputs}
        shifts = [(self._name((row, number))[0], later[number][row]) for row, number in outputs]
        titles = self._champion.rules.names.task_titles
        moved = [f"{titles.get(task, task)} by {100 * np.expm1(shift):+.1f} %" for task, shift in shifts]
        entity = self._completed.cells[self._champion.entity][outputs[0][0]]
        alike = (known.rows.labels[self._champion.entity] == entity).to_numpy()
        since = f"since {pd.Timestamp((known.months[alike] if alike.any() else known.months).min()):%Y-%m}"
        count = f"{alike.sum()} results of {entity}" if alike.any() else f"{len(alike)} results of others"
        return f"{count} {since} moved {', '.join(moved)}"

    def _name(self, output: tuple[int, int]) -> tuple[str, str]:
        """Return the task and the target of an output, given as a row and the number of a target."""
        return self._tasks[output[0]], self._champion.predictor.targets_[output[1]]

    def _find_moves(self, wanted: list[tuple[int, int]]) -> tuple[str, tuple[Move, ...]]:
        """Return the task whose score narrows the others most, and what it does to them."""
        known = self._champion.calibrated.known if self._champion.calibrated else None
        if known is None or not 2 <= len(wanted) <= _MAX_OUTPUTS:
            return "", ()
        outputs = np.array([self._outputs_of[number][row] for row, number in wanted])
        labels = shared_labels(self._predicted.table).iloc[[row for row, _ in wanted]]
        rows = ErrorRows(labels.reset_index(drop=True), outputs)
        nothing = known.for_user(np.zeros(0), rows.take(np.zeros(0, dtype=int)))
        shifts, widths = nothing.add_one(rows, np.log(MEASURED_FACTOR))
        np.fill_diagonal(widths, 0.0)
        number = int(widths.sum(axis=1).argmin())
        if widths[number].sum() > _NOTHING * (len(wanted) - 1):
            return "", ()
        moves = [
            Move(*self._name(output), float(np.exp(shifts[number, place])), float(widths[number, place]))
            for place, output in enumerate(wanted)
            if place != number
        ]
        return self._name(wanted[number])[0], tuple(moves)


def find_neighbors(predicted: MachinePredictions, champion: Champion, count: int) -> list[list[tuple[int, float]]]:
    """Return the nearest measured rows of every machine and their distances; none without a calibration."""
    table, index = predicted.table, champion.neighbor_index
    if index is None or not count:
        return [[] for _ in range(len(table.frame))]
    encoded = index.calibrated.in_domain.mask(predicted.encoded, predicted.unknown)
    return index.find_nearest(table.frame, table.frame[table.column_of(Tag.TASK)], count, encoded)


def describe_neighbor(champion: Champion, row: int, distance: float, target: str) -> Neighbor:
    """Return a measured row with its name, score and month of publication."""
    reference_data, measured = champion.reference_data, champion.reference_data.measured
    times, score = measured.select(tag=Tag.TIME), float(reference_data.column(target)[row])
    naming = (measured.column_of(Tag.ENTITY), *champion.rules.names.naming_columns)
    names = [name for name in naming if name in measured.frame]
    return Neighbor(
        str(reference_data.column(measured.column_of(Tag.ROW))[row]),
        name_machine({name: reference_data.column(name)[row] for name in names}, measured),
        None if np.isnan(score) else score,
        str(reference_data.column(times[0])[row].astype("datetime64[M]")) if times else "",
        distance,
    )


def name_machine(cells: pd.Series | Mapping[str, Any], table: Table) -> str:
    """Return the name of a machine of a table's dataset, see `Names.name_machine`."""
    names = find_rules(table.dataset).names
    return names.name_machine(table.column_of(Tag.ENTITY), {str(k): v for k, v in cells.items()})


def list_values(completed: CompletedMachines, table: Table) -> tuple[Value, ...]:
    """Return the known values that a machine has in all of its tasks and kinds, column by column, with their origins.

    Each may be typed back. What is assumed of the software, say, may differ between tasks: name one to list it.
    """
    first, *others = (_list_values(completed, row, table) for row in range(len(completed.codes)))
    common = set(first).intersection(*others)
    return tuple(value for value in first if value in common)


def _list_values(completed: CompletedMachines, row: int, table: Table) -> list[Value]:
    values = []
    origins, names = list(ORIGINS), list(completed.cells)
    given = {name: origins[code] for name, code in zip(names, completed.codes[row].tolist(), strict=True)}
    for column in table.columns:
        if Tag.TASK in column.tags:
            continue
        origin = given[column.name]
        if origin == MISSING or (column.role in _HIDDEN_ROLES and origin not in (GIVEN, ASSUMED)):
            continue
        cell = completed.cells[column.name][row]
        if column.kind is Kind.DATE:
            value: float | str = str(cell.astype("datetime64[M]"))
        else:
            value = float(cell) if column.kind is Kind.NUMERICAL else str(cell)
        values.append(Value(column.name, name_group(column), value, column.unit, origin))
    return values


def attribute_difference(cells: Cells, reference: Cells, champion: Champion) -> tuple[np.ndarray, list[str]]:
    """Return the Shapley value of every feature group that leads from a reference row to a row, and the groups.

    Shapes: cells and reference (n,) row by row -> (n, groups, targets), (groups,).
    """
    groups: dict[str, list[str]] = {}
    for column in champion.reference_data.measured.columns:
        if column.role in (Role.FEATURE, Role.KEY) or column.kind is Kind.DATE:
            groups.setdefault(name_group(column), []).append(column.name)

    def log_predict(cells: Cells) -> np.ndarray:
        deductions = champion.rules.limits.find_deductions(cells, champion.measured_kinds)
        return np.asarray(champion.predict_logs(cells) - deductions[:, None])

    return shapley_values(cells, reference, groups, log_predict), list(groups)


def list_drivers(shares: np.ndarray, groups: list[str]) -> tuple[Driver, ...]:
    """Return the groups that change the prediction, the largest first. Shapes: (groups,) logarithms."""
    order = np.argsort(-np.abs(shares), kind="stable")
    return tuple(
        Driver(groups[number], float(np.exp(shares[number]))) for number in order if abs(shares[number]) >= _MIN_CHANGE
    )


def shapley_values(
    machines: Cells,
    typical_machines: Cells,
    groups: Mapping[str, Sequence[str]],
    log_predict: Callable[[Cells], np.ndarray],
) -> np.ndarray:
    """Return what every group adds to the logarithm of the typical machine's prediction; the sum is the difference.

    Every machine is mixed with its typical one, group by group, in all 2^groups ways; derived features are made from
    the mixture. Shapes: machines and typical_machines (n,) row by row -> (n, groups, targets).
    Source: Shapley, 1953; for a prediction against a single reference, Lundberg and Lee, 2017.
    """
    names = list(groups)
    coalitions = [frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)]
    count = len(machines.index)
    values = log_predict(_mix(machines, typical_machines, groups, coalitions)).reshape(len(coalitions), count, -1)
    by_coalition = dict(zip(coalitions, values, strict=True))
    shares = np.zeros((count, len(names), values.shape[2]))
    for number, name in enumerate(names):
        for chosen in coalitions:
            if name not in chosen:
                weight = factorial(len(chosen)) * factorial(len(names) - len(chosen) - 1) / factorial(len(names))
                shares[:, number] += weight * (by_coalition[chosen | {name}] - by_coalition[chosen])
    return shares


def _mix(
    machines: Cells, typical_machines: Cells, groups: Mapping[str, Sequence[str]], coalitions: list[frozenset[str]]
) -> Cells:
    """Return every row once per coalition: the groups in it are the machine's, the others those of the typical one."""
    count = len(machines.index)
    rows = np.arange(count)
    from_typical = np.tile(rows + count, len(coalitions))
    positions = {
        column: np.concatenate([rows if name in chosen else rows + count for chosen in coalitions])
        for name, columns in groups.items()
        for column in columns
    }
    both = machines.append(typical_machines)
    mixed = {name: values[positions.get(name, from_typical)] for name, values in both.items()}
    return Cells(mixed, both.index[from_typical])
