"""Multiple imputation: set-ups drawn jointly from measured results that resemble a partly described machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, is_missing, list_rows, mask_cells, read_column
from perfcast.inference.coded_frame import CodedFrame
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
    result.
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
        numbers = {name for name, kind in kinds.items() if kind is Kind.NUMERICAL}
        self._texts = {name for name, kind in kinds.items() if kind in (Kind.CATEGORICAL, Kind.TEXT)}
        scored = [name for name in rules.penalties if name in kinds]
        self._entity = measured.column_of(Tag.ENTITY)
        copied = {*rules.per_unit.values(), (*rules.at_most.values(), *rules.only_with.values()), tuple(self._taken)}
        read = {name for names in copied for name in names}
        read |= {*scored, *times[:1], self.task, self._entity, rules.software}
        read |= {name for group in rules.groups for name in group}
        frame = measured.frame[[name for name in kinds if name in read]]
        self.frame = (frame.sort_values(times[0], kind="stable") if times else frame).reset_index(drop=True)
        self._coded = CodedFrame(self.frame)
        self._logs = {name: _logs(self.frame[name]) for name in scored if name in numbers}
        self._scored_texts = [name for name in scored if name not in numbers]
        when = self.frame[times[0]] if times else pd.Series(pd.Timestamp(0), self.frame.index)
        self._years = (when - when.max()).dt.days.fillna(0).to_numpy() / _DAYS
        self._last = when.max()
        available = self.frame[rules.software] if rules.software in kinds else pd.Series(self._last, self.frame.index)
        # software without a day is as old as the result; some is dated after its result
        since = ((available - self._last).dt.days / _DAYS).fillna(pd.Series(self._years, self.frame.index))
        self._software_years = np.minimum(since.to_numpy(), 0.0)
        self._rows: dict[tuple[str, ...], dict[Any, np.ndarray]] = {}
        self._drawn: dict[tuple[Any, ...], np.ndarray] = {}
        self._columns: dict[str, np.ndarray] = {}

    def draw(self, machines: Cells, count: int = DRAWS) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct donors of every machine with a missing cell that a donor gives.

        Shapes: (k,) machine number and (k,) donor row, repeated where a donor is drawn repeatedly, machine by machine;
        a machine without a missing cell or without a donor has none.
        """
        names = [
            self.task,
            *self._logs,
            *self._scored_texts,
            *([self.rules.launch] if self.rules.launch in machines else []),
        ]
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
        same = self._coded.equals(self._entity, known.get(self._entity), rows)
        if same.any():
            newest = self._years[rows][same].max()
        elif launch is not None:
            since = (pd.Timestamp(launch) - self._last).days / _DAYS + _AFTER_LAUNCH
            newest, is_new = min(since, 0.0), since >= 0
        total: np.ndarray = np.abs(self._years[rows] - newest) / self.rules.years
        if is_new:
            software = self._software_years[rows]
            total += (software.max() - software) / self.rules.years
        numbers = [name for name in self._logs if known.get(name) is not None]
        gaps = dict(zip(numbers, self._gaps(rows, {name: known[name] for name in numbers}), strict=True))
        for name, penalty in self.rules.penalties.items():
            if name in gaps:
                total += penalty * gaps[name]
            elif known.get(name) is not None:
                total += penalty * ~self._coded.equals(name, known[name], rows)
        return total

    def _gaps(self, rows: np.ndarray, known: Mapping[str, float]) -> np.ndarray:
        """Return the differences of donors from known numbers, in logarithms and at most 2, (numbers, rows)."""
        logs = np.array([self._logs[name][rows] for name in known]).reshape(len(known), len(rows))
        values = np.array([*known.values()], dtype=float)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = np.abs(logs - np.log(values))
        if (values <= 0).any():
            gaps = np.where(values > 0, gaps, np.where(logs == -np.inf, 0.0, 1.0))
        # an unknown value, and one of 0, is as far as one e times as large
        return np.minimum(np.where(gaps < np.inf, gaps, 1.0), 2.0)

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
        filled = {}
        for name in self._taken:
            missing = is_missing(machines[name])
            if not missing.any():
                continue
            values = self._give(name, donor_rows)
            if name in self.rules.per_unit:
                donor_units, machine_units = np.ones(len(values)), np.ones(len(values))
                for unit in self.rules.per_unit[name]:
                    donated = self._give(unit, donor_rows)
                    donor_units = donor_units * donated
                    machine_units = machine_units * np.where(is_missing(machines[unit]), donated, machines[unit])
                scaled = np.maximum(np.rint(values / donor_units * machine_units), 1.0)
                values = np.where(np.isnan(scaled), values, scaled)
            if name in self.rules.at_most:
                largest = self.rules.at_most[name]
                reaches = (values >= self._give(largest, donor_rows)) & ~is_missing(machines[largest])
                values = np.where(reaches, machines[largest], values)
            if name in self.rules.only_with:
                condition = self.rules.only_with[name]
                agrees = is_missing(machines[condition]) | (machines[condition] == self._give(condition, donor_rows))
                values = mask_cells(values, ~agrees)
            if name in self.rules.dates and self.rules.launch in machines:
                launch = machines[self.rules.launch]
                values = np.where(values < launch, launch, values)
            filled[name] = np.where(missing, values, machines[name])
        return machines.assign(filled)

    def _give(self, name: str, donor_rows: np.ndarray) -> np.ndarray:
        """Return the cells of donors in a column, as `Cells` holds them. Shapes: donor_rows (n,) of `frame`."""
        if name in self._texts:
            return self._coded.texts(name, donor_rows)
        if name not in self._columns:
            self._columns[name] = read_column(self.frame[name])
        return np.asarray(self._columns[name][donor_rows])


def _logs(values: pd.Series) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(values.to_numpy(dtype=float)))


def _group_rows(frame: pd.DataFrame, columns: list[str]) -> dict[Any, np.ndarray]:
    indices = frame.groupby(columns, observed=True).indices
    return {key: np.asarray(rows) for key, rows in indices.items()}
