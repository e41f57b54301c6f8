"""Measured results that donate usual values: by hot-deck imputation, and set-ups drawn jointly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.cells import (
    UNKNOWN,
    Cells,
    code_column,
    fill_missing,
    is_missing,
    list_rows,
    mask_cells,
    read_column,
)
from perfcast.schema.table import Kind, Table, Tag

_RECENT = pd.DateOffset(months=12)


@dataclass(frozen=True)
class Block:
    """Columns that hot-deck imputation takes together from one measured result.

    `columns`: the most important first. `ladder`: sets of columns in which donors must equal the machine, the
    strictest first. `recent`: whether only the last year of results may donate (software changes) or all of them (a
    memory module does not). `new_entity`: whether only machines whose entity has no measured result receive.
    """

    name: str
    columns: tuple[str, ...]
    ladder: tuple[tuple[str, ...], ...]
    recent: bool
    new_entity: bool = False


class HotDeck:
    """Measured results that may donate their cells.

    The donor is the most frequent combination of the block's columns among the results that match.
    Source: Andridge and Little, "A review of hot deck imputation", Int. Stat. Rev. 78, 2010.
    """

    def __init__(self, measured: Table) -> None:
        time, frame = measured.select(tag=Tag.TIME), measured.frame
        self.frame = frame.reset_index(drop=True)
        self.last = pd.Timestamp(self.frame[time[0]].max()) if time else pd.Timestamp.min
        self._recent = (self.frame[time[0]] > self.last - _RECENT).to_numpy() if time else np.ones(len(frame), bool)
        entity = measured.select(tag=Tag.ENTITY)
        self._entity = entity[0] if entity else ""
        self._measured = frozenset(self.frame[self._entity].dropna().unique()) if entity else frozenset()
        self._codes = cache(lambda name: code_column(self.frame[str(name)]))
        self._combinations = cache(self._number_combinations)
        self._find_donor = lru_cache(_MAX_REMEMBERED)(self._search_donor)

    def fill(self, machines: Cells, block: Block) -> Cells:
        """Return the machines with the missing cells of a block filled where a result matches them.

        A dataset need not have all columns of a block: the others are left out, and steps of the ladder with them.
        """
        columns = tuple(name for name in block.columns if name in machines)
        ladder = tuple(step for step in block.ladder if all(name in machines for name in step))
        missing = {name: is_missing(machines[name]) for name in columns}
        incomplete = np.any(list(missing.values()), axis=0) if columns else np.zeros(0, dtype=bool)
        if block.new_entity:
            incomplete &= [model not in self._measured for model in machines[self._entity].tolist()]
        if not incomplete.any():
            return machines
        block = replace(block, columns=columns, ladder=ladder)
        names = tuple(dict.fromkeys([*columns, *sorted({name for step in ladder for name in step})]))
        recipients = np.flatnonzero(incomplete)
        rows = list_rows({name: machines[name][recipients] for name in names}, names)
        donor_by_row = {row: self._find_donor(block, names, row) for row in set(rows)}
        filled = {name: machines[name].copy() for name in columns if missing[name].any()}
        for place, row in zip(recipients.tolist(), rows, strict=True):
            donor = donor_by_row[row]
            if donor is not None:
                for name, values in filled.items():
                    if missing[name][place]:
                        values[place] = donor[name]
        return machines.assign(filled) if any(donor is not None for donor in donor_by_row.values()) else machines

    def _search_donor(self, block: Block, names: tuple[str, ...], row: tuple[object, ...]) -> Mapping[str, Any] | None:
        """Return the most frequent combination of the block's columns, None where no result matches the machine.

        Results that have all given cells are searched first, then those that have all but the last one, and so on.
        """
        cells = dict(zip(names, row, strict=True))
        rows = self._find_rows(block, [(name, cells[name]) for name in block.columns if cells[name] is not None], cells)
        if not len(rows):
            return None
        numbers, first = self._combinations(block)
        place = first[np.bincount(numbers[rows]).argmax()]
        return {name: self._read_cell(name, place) for name in block.columns}

    def _find_rows(self, block: Block, known: Sequence[tuple[str, Any]], cells: Mapping[str, Any]) -> np.ndarray:
        """Return the results that agree with the machine in as many of the first known cells as any do."""
        best, best_count = np.zeros(0, dtype=int), -1
        for step in block.ladder:
            if any(cells[name] is None for name in step):
                continue
            rows, count = np.flatnonzero(self._recent) if block.recent else np.arange(len(self.frame)), 0
            for name in step:
                rows = rows[self._codes(name).equals(cells[name], rows)]
            for name, value in known if len(rows) else ():
                narrower = rows[self._codes(name).equals(value, rows)]
                if not len(narrower):
                    break
                rows, count = narrower, count + 1
            if len(rows) and count > best_count:
                best, best_count = rows, count
        return best

    def _read_cell(self, name: str, row: int) -> Any:
        values = self.frame[name].array
        cell = values[row]
        return None if values.dtype == "str" and pd.isna(cell) else cell

    def _number_combinations(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of every result's combination of the block's columns, and the first row of each."""
        numbers = self.frame.groupby(list(block.columns), dropna=False, sort=True).ngroup().to_numpy()
        return numbers, np.unique(numbers, return_index=True)[1]


DONORS = 15
"""Donors of a machine, drawn in proportion to their weights: its typical set-up is one of theirs."""

MIN_CANDIDATES = 30
"""Results of the narrowest group below which donors also come from the next wider one."""
_MAX_REMEMBERED = 20_000
"""Machines whose donors are remembered: a batch repeats them."""
_ROWS_AT_ONCE = 1 << 14
"""Candidates whose weights are computed together."""
_NOT_GIVEN = -3
"""Code of a cell that a machine lacks."""
_DAYS = 365.25


@dataclass(frozen=True)
class JointRules:
    """Rules of the typical set-up of a machine.

    `keys`: columns that name a machine and its day, without any all that are not taken. What else is given does not
    change its typical set-up.
    `taken`: columns that a donor gives, all from one result, but for those of `software`: these come from a result of
    `software_groups`, so that an old machine runs what others run on the day of the set-up. `apart`: columns whose
    penalties the software has not: typed or assumed, they tell nothing of it. `per_unit`: taken columns
    that grow with the product of others, such as modules with memory channels. `groups`: columns in which candidates
    equal the machine, the narrowest first. `penalties`: by column, what a difference from a known value takes off the
    logarithm of a donor's weight: that of another text, or of a number e times as large. `years`: time from the day of
    the set-up at which a weight has fallen to 1/e. `at_most`: taken columns with the columns of their largest values,
    ascending: a donor that reaches its own largest value, or exceeds that of the machine, gives that of the machine.
    `facts`: largest values that are no column, by name: the column that tells them, and how. `only_with`: taken columns
    that a donor gives only where it agrees with the machine in another column. `day`: column of the day that the
    set-up is of. `released`: column of the day from which the software was to be had: its age lowers the weight like
    that of the result where the day of the set-up is not before the newest result. `launch`: column of the day before
    which there is no machine: the drawn `dates` are not earlier. `replaced`: whether assumed cells that break a limit
    become those of the most frequent set-up that breaks none.
    """

    taken: tuple[str, ...]
    per_unit: Mapping[str, tuple[str, ...]]
    groups: tuple[tuple[str, ...], ...]
    penalties: Mapping[str, float]
    years: float
    keys: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    software_groups: tuple[tuple[str, ...], ...] = ()
    at_most: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = field(default_factory=dict)
    only_with: Mapping[str, str] = field(default_factory=dict)
    day: str = ""
    released: str = ""
    launch: str = ""
    replaced: bool = False
    dates: tuple[str, ...] = ()


_Drawn = dict[tuple[Any, ...], np.ndarray]


class JointDeck:
    """Measured results that donate whole set-ups.

    A donor is drawn in proportion to its weight, which falls with its differences from the known values of the machine
    and with the time between its result and the day of the set-up. Draws are systematic: evenly spaced in the
    cumulative weights of the donors in the order of time, so equal machines have equal draws, and machines that differ
    little have similar ones. Hardware is drawn by machine from the results of all tasks, software by task.
    Source: Rubin, "Multiple Imputation for Nonresponse in Surveys", 1987, with hot-deck donors (Andridge and Little,
    Int. Stat. Rev. 78, 2010); systematic resampling (Kitagawa, J. Comput. Graph. Stat. 5, 1996).
    """

    def __init__(self, measured: Table, rules: JointRules) -> None:
        times = measured.select(tag=Tag.TIME)
        self.rules, self.task = rules, measured.column_of(Tag.TASK)
        kinds = {column.name: column.kind for column in measured.columns}
        self._bounds = {column.name: (column.low, column.high) for column in measured.columns}
        self._taken = [name for name in rules.taken if name in kinds]
        numbers = {name for name, kind in kinds.items() if kind is Kind.NUMERICAL}
        self._texts = {name for name, kind in kinds.items() if kind in (Kind.CATEGORICAL, Kind.TEXT)}
        scored = [name for name in rules.penalties if name in kinds]
        self._entity = measured.column_of(Tag.ENTITY)
        self._software = [name for name in self._taken if name in rules.software]
        self._hardware = [name for name in self._taken if name not in rules.software]
        copied = {*rules.per_unit.values(), *rules.at_most.values(), (*rules.only_with.values(), *self._taken)}
        read = {name for names in copied for name in names}
        read |= {*scored, *times[:1], self.task, self._entity, rules.released}
        read |= {name for group in (*rules.groups, *rules.software_groups) for name in group}
        self._measured, self._times = measured.frame[[name for name in kinds if name in read]], times[:1]
        self._last = self._measured[times[0]].max() if times else pd.Timestamp(0)
        self._codes = cache(lambda name: code_column(self.frame[str(name)]))
        self._numbers = [name for name in scored if name in numbers]
        self._scored_texts = [name for name in scored if name not in numbers]
        self._group_rows = cache(lambda columns: self.frame.groupby(list(columns), observed=True).indices)
        self._column = cache(self._read_column)
        self._drawn: tuple[_Drawn, _Drawn] = ({}, {})

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The measured results in the order of time: a champion whose typical machines are saved needs none."""
        frame = self._measured.sort_values(self._times, kind="stable") if self._times else self._measured
        return frame.reset_index(drop=True)

    @cached_property
    def _when(self) -> pd.Series:
        """The days of the results."""
        return self.frame[self._times[0]] if self._times else pd.Series(self._last, self.frame.index)

    @cached_property
    def _years(self) -> np.ndarray:
        """The years from the newest result to every result, at most 0."""
        return (self._when - self._last).dt.days.fillna(0).to_numpy() / _DAYS

    @cached_property
    def _software_years(self) -> np.ndarray:
        """The years from the newest result to the software of every result."""
        released = self.frame.get(self.rules.released, self._when)
        # software without a day is as old as the result
        return (released.fillna(self._when) - self._last).dt.days.fillna(0).to_numpy() / _DAYS

    def date(self, machines: Cells, when: pd.Series | pd.Timestamp | None) -> Cells:
        """Return machines with the day that their set-up is of, where it is not given. Shapes: `when` (n,)."""
        if self.rules.day not in machines:
            return machines
        last = pd.Timestamp(self._last)
        wanted = pd.Series(last if when is None else when).fillna(last).to_numpy("datetime64[us]")
        days = self._limit_days(np.broadcast_to(wanted, len(machines.index)), machines)
        return fill_missing(machines, {self.rules.day: days})

    def limit_days(self, machines: Cells) -> Cells:
        """Return machines whose days are at most that of the newest result."""
        day = self.rules.day
        return machines.assign({day: self._limit_days(machines[day], machines)}) if day in machines else machines

    def _limit_days(self, days: np.ndarray, machines: Cells) -> np.ndarray:
        """Return days that are at most that of the newest result, (n,), but that no machine is older than its entity.

        No later software was measured.
        """
        limited = np.minimum(days, pd.Timestamp(self._last).to_datetime64())
        launch = self.rules.launch
        return np.asarray(np.fmax(limited, machines[launch]) if launch in machines else limited)

    def lacks_hardware(self, machines: Cells) -> np.ndarray:
        """Return which machines lack hardware that a donor gives, (n,) bool."""
        return np.asarray(np.logical_or.reduce([is_missing(machines[name]) for name in self._hardware]))

    def draw(self, machines: Cells, *, software: bool = False) -> np.ndarray:
        """Return the donors of every machine, in the order of time, (n, DONORS) rows of `frame`.

        Donors of hardware are results of any task, those of software of the task of the machine. They are -1 for a
        machine that lacks no cell which they give, and for one without any.
        """
        names = [*self._numbers, *self._scored_texts]
        if software:
            # what tells nothing of the software gives machines no donors of their own
            names = [self.task, *(name for name in names if name not in self.rules.apart)]
        names += [name for name in (self.rules.day, self.rules.launch) if name in machines]
        keys = list_rows(machines, names)
        incomplete = np.zeros(len(keys), dtype=bool)
        for name in self._software if software else self._hardware:
            incomplete |= is_missing(machines[name])
        numbers = np.flatnonzero(incomplete).tolist()
        drawn = self._drawn[software]
        new = [key for key in dict.fromkeys(keys[number] for number in numbers) if key not in drawn]
        if len(drawn) + len(new) > _MAX_REMEMBERED:
            drawn.clear()
            new = list(dict.fromkeys(keys[number] for number in numbers))
        known = [dict(zip(names, key, strict=True)) for key in new]
        drawn.update(zip(new, self._draw_donors(known, software=software), strict=True))
        drawn_rows = np.full((len(keys), DONORS), -1)
        for number in numbers:
            drawn_rows[number] = drawn[keys[number]]
        return drawn_rows

    def _draw_donors(self, machines: Sequence[Mapping[str, Any]], *, software: bool) -> Iterator[np.ndarray]:
        """Yield the rows of the donors of every machine, given by its known cells, -1 without a candidate."""
        candidates = [self._find_candidates(known, software=software) for known in machines]
        sizes = np.cumsum([0, *map(len, candidates)])
        begin = 0
        while begin < len(machines):
            # machines whose candidates together stay in a cache
            end = max(begin + 1, int(np.searchsorted(sizes, sizes[begin] + _ROWS_AT_ONCE, side="right")) - 1)
            rows = np.concatenate(candidates[begin:end])
            penalties = self._penalties(machines[begin:end], rows, np.diff(sizes[begin : end + 1]), software=software)
            by_machine = np.split(penalties, sizes[begin + 1 : end] - sizes[begin])
            for among, penalty in zip(candidates[begin:end], by_machine, strict=True):
                yield _draw_systematically(among, penalty)
            begin = end

    def _penalties(
        self, machines: Sequence[Mapping[str, Any]], rows: np.ndarray, sizes: np.ndarray, *, software: bool
    ) -> np.ndarray:
        """Return the penalties of the candidates of machines, (rows,). Shapes: rows (rows,), sizes (machines,)."""
        owners = np.repeat(np.arange(len(machines)), sizes)
        last = pd.Timestamp(self._last)
        days = [last if (day := known.get(self.rules.day)) is None else day for known in machines]
        wanted = np.array([min((pd.Timestamp(day) - last).days, 0) for day in days])[owners] / _DAYS
        years = self._years[rows]
        if not software:
            # machines of an entity change little after its last result
            same = self._codes(self._entity).codes[rows] == self._codes_of(self._entity, machines)[owners]
            newest = np.full(len(machines), -np.inf)
            np.maximum.at(newest, owners[same], years[same])
            wanted = np.minimum(wanted, np.where(newest > -np.inf, newest, 0.0)[owners])
        total: np.ndarray = np.abs(years - wanted) / self.rules.years
        if software:
            # what will run after the newest result is rather the newest software than that of the newest results
            age = np.where(wanted < 0, years, self._software_years[rows])
            total += np.abs(wanted - age) / self.rules.years
        for name, penalty in self.rules.penalties.items():
            if software and name in self.rules.apart:
                continue
            if name in self._numbers:
                values = np.array([known.get(name) for known in machines], dtype=float)
                if not np.isnan(values).all():
                    total += penalty * self._find_gaps(name, values)[owners, self._codes(name).codes[rows]]
            elif name in self._scored_texts:
                known_codes = self._codes_of(name, machines)
                if (known_codes != _NOT_GIVEN).any():
                    codes = known_codes[owners]
                    total += penalty * ((self._codes(name).codes[rows] != codes) & (codes != _NOT_GIVEN))
        return total

    def _find_gaps(self, name: str, values: np.ndarray) -> np.ndarray:
        """Return the gaps of numbers to those that results have of a column, the last to a missing one.

        Shapes: values (machines,) -> (machines, distinct values + 1).
        """
        distinct = np.array([*self._codes(name).values, np.nan], dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            return _gaps(np.log(distinct), values[:, None])

    def _codes_of(self, name: str, machines: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return the codes of a column's cells among those of the results, (machines,)."""
        places = self._codes(name).places
        values = (known.get(name) for known in machines)
        return np.array([_NOT_GIVEN if value is None else places.get(value, UNKNOWN) for value in values], dtype=int)

    def _find_candidates(self, known: Mapping[str, Any], *, software: bool) -> np.ndarray:
        """Return the rows of the narrowest groups that together have enough results, in the order of time."""
        candidates: np.ndarray = np.zeros(0, dtype=int)
        for group in (*(self.rules.software_groups if software else self.rules.groups), ()):
            columns = (*([self.task] if software else []), *(name for name in group if name != self.task))
            if not columns:
                return np.arange(len(self.frame))
            key = tuple(known.get(name) for name in columns)
            if any(cell is None for cell in key):
                continue
            rows = np.asarray(self._group_rows(columns).get(key if len(key) > 1 else key[0], []), dtype=int)
            if len(candidates):
                among = np.zeros(len(self.frame), dtype=bool)
                among[candidates] = among[rows] = True
                rows = np.flatnonzero(among)
            candidates = rows
            if len(candidates) >= MIN_CANDIDATES:
                break
        return candidates

    def donate(self, machines: Cells, *, software: bool = False) -> dict[str, np.ndarray]:
        """Return the cells that machines may take from their donors, of hardware or software, (n, DONORS) by column."""
        count, names = len(machines.index), self._software if software else self._hardware
        donor_rows = self.draw(machines, software=software).ravel()
        repeated = machines.take(np.repeat(np.arange(count), DONORS))
        rules = self.rules
        read = {name for copied in (rules.per_unit, rules.at_most) for each in names for name in copied.get(each, ())}
        read |= {rules.facts[name][0] for name in read if name in rules.facts}
        read |= {rules.only_with[name] for name in names if name in rules.only_with}
        donor_cells = {name: self._column(name)[donor_rows] for name in self.frame if name in read.union(names)}
        cells = {name: mask_cells(self._adapt(name, repeated, donor_cells), donor_rows < 0) for name in names}
        return {name: values.reshape(count, DONORS) for name, values in cells.items()}

    def adopt(self, machines: Cells, typical_machines: Cells) -> Cells:
        """Return machines with their missing cells from their typical machines, as what is given allows."""
        taken = {name: self._adapt(name, machines, typical_machines) for name in self._taken}
        return fill_missing(machines, taken)

    def _adapt(self, name: str, machines: Cells, donor_cells: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the cells of a column that machines take from a donor each, (n,)."""
        rules, values = self.rules, donor_cells[name]
        if name in rules.per_unit:
            donor_units, machine_units = np.ones(len(values)), np.ones(len(values))
            for unit in rules.per_unit[name]:
                donor_units = donor_units * donor_cells[unit]
                machine_units = machine_units * np.where(is_missing(machines[unit]), donor_cells[unit], machines[unit])
            scaled = np.maximum(np.rint(values / donor_units * machine_units), np.minimum(values, 1.0))
            # what is assumed may be typed
            scaled = np.clip(scaled, *self._bounds[name])
            values = np.where(np.isnan(scaled), values, scaled)
        donated = values
        for largest in rules.at_most.get(name, ()):
            source, find = rules.facts.get(largest, (largest, np.asarray))
            limit, limit_of_donor = find(machines[source]), find(donor_cells[source])
            is_limited = (donated >= limit_of_donor) | (values > limit)
            values = np.where(is_limited & ~is_missing(limit), limit, values)
        if name in rules.only_with:
            condition = rules.only_with[name]
            agrees = is_missing(machines[condition]) | (machines[condition] == donor_cells[condition])
            values = mask_cells(values, ~agrees)
        if name in rules.dates and rules.launch in machines:
            launch = machines[rules.launch]
            values = np.where(values < launch, launch, values)
        return np.asarray(values)

    def _read_column(self, name: str) -> np.ndarray:
        """Return a column as `Cells` holds it; rows share their texts."""
        if name not in self._texts:
            return read_column(self.frame[name])
        return np.asarray(np.array([*self._codes(name).values, None], dtype=object)[self._codes(name).codes])


def _draw_systematically(candidates: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """Return draws of candidates in proportion to their weights exp(-penalty), evenly spaced in the order of rows."""
    if not len(candidates):
        return np.full(DONORS, -1)
    weights = np.exp(-penalties + penalties.min())
    cumulative = np.cumsum(weights) / weights.sum()
    places = np.searchsorted(cumulative, (np.arange(DONORS) + 0.5) / DONORS)
    return np.asarray(candidates[np.minimum(places, len(candidates) - 1)])


def _gaps(logs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the differences of donors from numbers, in logarithms and at most 2, 0 where a number is not given."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.abs(logs - np.log(values))
    # an unknown value, and one of 0, is as far as one e times as large
    gaps = np.where(values > 0, gaps, np.where(logs == -np.inf, 0.0, 1.0))
    return np.where(np.isnan(values), 0.0, np.minimum(np.where(gaps < np.inf, gaps, 1.0), 2.0))
