"""Multiple imputation: set-ups drawn jointly from measured results that resemble a partly described machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, is_missing, list_rows, mask_cells
from perfcast.schema.table import Kind, Table, Tag

DRAWS = 21
"""Draws of one machine: the tails of a 90 % interval have one of them on either side."""

_MIN_CANDIDATES = 30
"""Results of the narrowest group below which donors also come from the next wider one."""
_MAX_REMEMBERED = 20_000
"""Machines whose donors are remembered: a batch repeats them."""
_DAYS = 365.25
_AFTER_LAUNCH = 0.5
"""Years from a launch to the middle of the results of its first year."""


@dataclass(frozen=True)
class JointRules:
    """Rules of joint draws.

    `taken`: columns that a donor gives, all from one result. `per_unit`: taken columns that grow with the product of
    others, such as modules with memory channels. `groups`: columns in which candidates equal the machine, the
    narrowest first. `penalties`: by column, what a difference from a known value takes off the logarithm of a donor's
    weight: that of another text, or of a number e times as large. `years`: age at which a weight has fallen to 1/e.
    `at_most`: taken columns with the column of their largest value: a donor that reaches its own largest value gives
    that of the machine. `only_with`: taken columns that a donor gives only where it agrees with the machine in another
    column. `launch`: column of the day before which there is no machine: results near it count as new ones for a CPU
    model without results, and the drawn `dates` are not earlier. `software`: column of the day from which the software
    was to be had: a CPU model newer than all results runs the newest, so its age lowers the weight like that of the
    result. `checked`: whether draws that break a limit of the dataset are left out where others are not.
    """

    taken: tuple[str, ...]
    per_unit: Mapping[str, tuple[str, ...]]
    groups: tuple[tuple[str, ...], ...]
    penalties: Mapping[str, float]
    years: float
    at_most: Mapping[str, str] = field(default_factory=dict)
    only_with: Mapping[str, str] = field(default_factory=dict)
    launch: str = ""
    software: str = ""
    dates: tuple[str, ...] = ()
    checked: bool = False


_UNKNOWN = -2
"""Code of a label that no row has; that of a missing one is -1."""


class JointDeck:
    """Measured results that donate whole set-ups.

    A donor is drawn in proportion to its weight, which falls with its differences from the known values of the machine
    and with its age. Draws are systematic: evenly spaced in the cumulative weights of the donors in the order of time,
    so equal machines have equal draws, and machines that differ little have similar ones.
    Source: Rubin, "Multiple Imputation for Nonresponse in Surveys", 1987, with hot-deck donors (Andridge and Little,
    Int. Stat. Rev. 78, 2010); systematic resampling (Kitagawa, J. Comput. Graph. Stat. 5, 1996).
    """

    def __init__(self, measured: Table, rules: JointRules) -> None:
        times = measured.select(tag=Tag.TIME)
        self.rules, self.task = rules, measured.column_of(Tag.TASK)
        kinds = {column.name: column.kind for column in measured.columns}
        self._taken = [name for name in rules.taken if name in kinds]
        self._numbers = {name for name, kind in kinds.items() if kind is Kind.NUMERICAL}
        scored = [name for name in rules.penalties if name in kinds]
        self._entity = measured.column_of(Tag.ENTITY)
        copied = {*rules.per_unit.values(), (*rules.at_most.values(), *rules.only_with.values()), tuple(self._taken)}
        self._given = sorted({name for names in copied for name in names if name in kinds})
        read = {*self._given, *scored, *times[:1], self.task, self._entity, rules.software}
        read |= {name for group in rules.groups for name in group}
        frame = measured.frame[[name for name in kinds if name in read]]
        self.frame = (frame.sort_values(times[0], kind="stable") if times else frame).reset_index(drop=True)
        self._logs = {name: _logs(self.frame[name]) for name in scored if name in self._numbers}
        self._texts = {name: LabelCodes(self.frame[name]) for name in scored if name not in self._numbers}
        when = self.frame[times[0]] if times else pd.Series(pd.Timestamp(0), self.frame.index)
        self._years = (when - when.max()).dt.days.fillna(0).to_numpy() / _DAYS
        self._last = when.max()
        available = self.frame[rules.software] if rules.software in kinds else pd.Series(self._last, self.frame.index)
        # software without a day is as old as the result; some is dated after its result
        since = ((available - self._last).dt.days / _DAYS).fillna(pd.Series(self._years, self.frame.index))
        self._software_years = np.minimum(since.to_numpy(), 0.0)
        self._entities = LabelCodes(self.frame[self._entity])
        self._rows: dict[tuple[str, ...], dict[Any, np.ndarray]] = {}
        self._drawn: dict[tuple[Any, ...], np.ndarray] = {}

    def draw(self, machines: Cells, count: int = DRAWS) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct donors of every machine with a missing cell that a donor gives.

        Shapes: (k,) machine number and (k,) donor row, repeated where a donor is drawn repeatedly, machine by machine;
        a machine without a missing cell or without a donor has none.
        """
        names = [self.task, *self._logs, *self._texts, *([self.rules.launch] if self.rules.launch in machines else [])]
        keys = list_rows(machines, names)
        incomplete = np.any([is_missing(machines[name]) for name in self._taken], axis=0)
        owners, donor_rows = [], []
        for number in np.flatnonzero(incomplete):
            key = keys[number]
            if key not in self._drawn:
                if len(self._drawn) >= _MAX_REMEMBERED:
                    self._drawn.clear()
                self._drawn[key] = self._draw_donors(dict(zip(names, key, strict=True)), count)
            owners.append(np.full(len(self._drawn[key]), number))
            donor_rows.append(self._drawn[key])
        if not owners:
            return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        return np.concatenate(owners), np.concatenate(donor_rows)

    def _draw_donors(self, known: Mapping[str, Any], count: int) -> np.ndarray:
        rows = self._find_candidates(known)
        if not len(rows):
            return rows
        weights = np.exp(-(penalty := self._penalties(known, rows)) + penalty.min())
        cumulative = np.cumsum(weights) / weights.sum()
        places = np.searchsorted(cumulative, (np.arange(count) + 0.5) / count)
        return rows[np.minimum(places, len(rows) - 1)]

    def _penalties(self, known: Mapping[str, Any], rows: np.ndarray) -> np.ndarray:
        launch, newest, is_new = known.get(self.rules.launch), 0.0, False
        same = self._entities.equal(rows, known.get(self._entity))
        if same.any():
            newest = self._years[rows][same].max()
        elif launch is not None:
            since = (pd.Timestamp(launch) - self._last).days / _DAYS + _AFTER_LAUNCH
            newest, is_new = min(since, 0.0), since >= 0
        total: np.ndarray = np.abs(self._years[rows] - newest) / self.rules.years
        if is_new:
            software = self._software_years[rows]
            total += (software.max() - software) / self.rules.years
        for name, penalty in self.rules.penalties.items():
            value = known.get(name)
            if value is None:
                continue
            if name in self._logs:
                values = self._logs[name][rows]
                gap = np.abs(values - np.log(value)) if value > 0 else np.where(values == -np.inf, 0.0, 1.0)
                # an unknown value, and one of 0, is as far as one e times as large
                total += penalty * np.minimum(np.where(gap < np.inf, gap, 1.0), 2.0)
            elif name in self._texts:
                total += penalty * ~self._texts[name].equal(rows, value)
        return total

    def _find_candidates(self, known: Mapping[str, Any]) -> np.ndarray:
        """Return the rows of the narrowest groups that together have enough results, in the order of time."""
        candidates: np.ndarray = np.zeros(0, dtype=int)
        for group in (*self.rules.groups, ()):
            columns = (self.task, *(name for name in group if name != self.task))
            key = tuple(known.get(name) for name in columns)
            if any(cell is None for cell in key):
                continue
            if columns not in self._rows:
                self._rows[columns] = _group_rows(self.frame, list(columns))
            rows = self._rows[columns].get(key if len(key) > 1 else key[0], np.zeros(0, dtype=int))
            if len(candidates):
                among = np.zeros(len(self.frame), dtype=bool)
                among[candidates] = among[rows] = True
                rows = np.flatnonzero(among)
            candidates = rows
            if len(candidates) >= _MIN_CANDIDATES:
                break
        return candidates

    def fill(self, machines: Cells, donor_rows: np.ndarray) -> Cells:
        """Return machines with their missing cells from a donor each. Shapes: donor_rows (n,) of `frame`."""
        given = Cells.read(self.frame[self._given].iloc[donor_rows])
        filled = {}
        for name in self._taken:
            missing = is_missing(machines[name])
            if not missing.any():
                continue
            values = given[name]
            if name in self.rules.per_unit:
                donor_units, machine_units = np.ones(len(values)), np.ones(len(values))
                for unit in self.rules.per_unit[name]:
                    donor_units = donor_units * given[unit]
                    machine_units = machine_units * np.where(is_missing(machines[unit]), given[unit], machines[unit])
                scaled = np.maximum(np.rint(values / donor_units * machine_units), 1.0)
                values = np.where(np.isnan(scaled), values, scaled)
            if name in self.rules.at_most:
                largest = self.rules.at_most[name]
                reaches = (values >= given[largest]) & ~is_missing(machines[largest])
                values = np.where(reaches, machines[largest], values)
            if name in self.rules.only_with:
                condition = self.rules.only_with[name]
                agrees = is_missing(machines[condition]) | (machines[condition] == given[condition])
                values = mask_cells(values, ~agrees)
            if name in self.rules.dates and self.rules.launch in machines:
                launch = machines[self.rules.launch]
                values = np.where(values < launch, launch, values)
            filled[name] = np.where(missing, values, machines[name])
        return machines.assign(filled)


class LabelCodes:
    """Labels of rows as whole numbers, which compare ten times faster than texts; a missing label equals nothing."""

    def __init__(self, labels: pd.Series) -> None:
        self._codes, distinct = pd.factorize(labels.astype(object))
        self._numbers = {label: number for number, label in enumerate(distinct)}

    def equal(self, rows: np.ndarray, label: Any) -> np.ndarray:
        """Mark the rows that have a label. Shapes: rows (n,) int -> (n,) bool."""
        mask: np.ndarray = self._codes[rows] == self._numbers.get(label, _UNKNOWN)
        return mask


def _logs(values: pd.Series) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(values.to_numpy(dtype=float)))


def _group_rows(frame: pd.DataFrame, columns: list[str]) -> dict[Any, np.ndarray]:
    indices = frame.groupby(columns, observed=True).indices
    return {key: np.asarray(rows) for key, rows in indices.items()}
