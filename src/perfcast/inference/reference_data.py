"""Reference data of a champion: every measured result, and the facts of every entity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.inference.cells import UNKNOWN, Cells, EntityFacts, code_column, fill_missing, read_column
from perfcast.inference.donors import MIN_CANDIDATES
from perfcast.inference.rules.description_rules import find_rules
from perfcast.schema.table import LOWER_IS_BETTER, TASK_KIND, Column, Kind, Role, Table, Tag
from perfcast.schema.table_files import read_parquet, read_table, write_table
from perfcast.uncertainty.levels import entity_slices
from perfcast.utils.io import atomic_path

_MEASURED, _ENTITY_FACTS = "measured.parquet", "cpu_models.parquet"
_UNUSED = "set_aside"
_YEAR = pd.DateOffset(months=12)
MAX_RESULTS = 100_000
"""Most results that are kept, so that a prediction takes no longer however many are measured."""


@dataclass(frozen=True)
class DatasetBasis:
    """Measured results behind the estimates of some tasks: `results` of a dataset up to a month, "" without dates.

    `bridged_from` is the dataset whose estimates are features, "" for none. `source` is the address of the results,
    `retrieved` when and by whom they were; `notice` is what every answer says of the dataset. All three may be "".
    """

    dataset: str
    results: int
    until: str
    bridged_from: str
    tasks: tuple[str, ...]
    source: str = ""
    retrieved: str = ""
    notice: str = ""

    def __str__(self) -> str:
        bridge = f"bridged from {self.bridged_from}, " if self.bridged_from else ""
        return f"{self.dataset}: {bridge}{self.results:,} results{f' to {self.until}' if self.until else ''}"

    @property
    def origin(self) -> str:
        """The address of the results, and when and by whom they were retrieved."""
        return ", ".join(filter(None, (self.source, self.retrieved and f"retrieved {self.retrieved}")))


@dataclass
class ReferenceData:
    """Measured results with their standard columns, and facts by entity (index), empty without a table of them.

    `user_facts` are those of a user's table on `user_entities`, which `entity_facts` contains; they are not saved.
    `column` returns a column of the measured results as `Cells` holds it; it is read once.
    """

    measured: Table
    entity_facts: pd.DataFrame
    user_facts: tuple[Any, ...] = ()
    user_entities: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        frame = self.measured.frame
        self.facts_by_model = EntityFacts(self.entity_facts)
        self.column = cache(lambda name: read_column(frame[str(name)]))
        self._codes = cache(lambda name: code_column(frame[str(name)]))
        self._common: dict[tuple[Tag, str], Mapping[str, Any]] = {}
        self._rows = cache(lambda name: frame.groupby(name, observed=True).indices)
        self._is_found = cache(self._flag_values)

    @classmethod
    def gather(
        cls,
        standard: Table,
        raw: Mapping[str, Path],
        features: Sequence[str],
        *,
        rows: np.ndarray | None = None,
        as_of: pd.Timestamp | None = None,
    ) -> Self:
        """Collect what predictions read and show from a standard table, and facts from the ingested sources.

        `rows`, (n,) bool, are those of the table that count as measured, all without it. Only facts that were public
        before `as_of` count; the names of all entities of the table are known.
        Of more than `MAX_RESULTS` results the newest of every entity and task are kept, equally many of each.
        """
        rules = find_rules(standard.dataset)
        machine_columns = {column.name for column in describing_columns(standard, features)}
        columns = [
            column
            for column in standard.columns
            if column.name in machine_columns
            or column.role is Role.TARGET
            or Tag.TIME in column.tags
            or Tag.TESTER in column.tags
            or column.name in rules.names.naming_columns
        ]
        names = [column.name for column in columns]
        facts: dict[str, Any] = {_UNUSED: sorted({column.name for column in standard.columns} - set(names))}
        facts |= {LOWER_IS_BETTER: True} if standard.facts.get(LOWER_IS_BETTER) is True else {}
        counted = standard if rows is None else replace(standard, frame=standard.frame.loc[rows])
        frame = counted.frame.loc[_newest(counted), names].reset_index(drop=True)
        measured = Table(standard.dataset, frame, tuple(columns), facts)
        entities = standard.frame[standard.column_of(Tag.ENTITY)].dropna().unique()
        return cls(measured, rules.typical_values.read_entity_facts(raw, entities, as_of))

    @property
    def unused_columns(self) -> frozenset[str]:
        """The names of standard columns that no prediction reads: a file of measurements may have them."""
        return frozenset((*self.measured.facts.get(_UNUSED, ()), *self.measured.select(tag=Tag.TESTER)))

    def fill_common(self, cells: Cells, tag: Tag) -> Cells:
        """Fill missing features of the tagged column's group with the value that all its measured rows have."""
        values = cells[self.measured.column_of(tag)].tolist()
        common = {value: self.find_common_values(tag, value) if value else {} for value in dict.fromkeys(values)}
        places = {value: place for place, value in enumerate(common)}
        rows = np.array([places[value] for value in values], dtype=int)
        candidates = {
            name: np.array([known.get(name) for known in common.values()], dtype=cells[name].dtype)[rows]
            for name in dict.fromkeys(name for known in common.values() for name in known)
        }
        return fill_missing(cells, candidates)

    def find_common_values(self, tag: Tag, value: str) -> Mapping[str, Any]:
        """Return the features of a tagged column's group in which all measured rows of one of its values agree.

        Returns: cells by name; features that are missing in the rows, or differ between them, are left out.
        """
        if (tag, value) not in self._common:
            by = self.measured.column_of(tag)
            group = next(column.group for column in self.measured.columns if column.name == by)
            rows, common = self._find_rows(tag, value), dict[str, Any]()
            kind = [TASK_KIND] if tag is Tag.TASK and TASK_KIND in self.measured.frame else []
            for name in (*self.measured.select(role=Role.FEATURE, group=group), *kind):
                column = self._codes(name)
                codes = column.codes[rows]
                codes = codes[codes >= 0]
                if name != by and len(codes) and (codes == codes[0]).all():
                    common[name] = column.values[codes[0]]
            self._common[tag, value] = common
        return self._common[tag, value]

    def list_values(self, name: str, entity: str | None) -> list[float]:
        """Return the distinct numbers of a column in the measured results of an entity."""
        values = self.column(name)[self._find_rows(Tag.ENTITY, entity)]
        return sorted(set(values[~np.isnan(values)].tolist()))

    def find_measured(self, machines: Cells, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return by column which cells a measured result of the task and of the same kind has, (n,) bool each.

        The kind is the narrowest slice of the entity that is enough for joint draws, such as the family, or else all.
        """
        levels = [self.measured.column_of(Tag.TASK), *entity_slices(self.measured)]
        labels = zip(*(machines[level].tolist() for level in levels), strict=True)
        groups = [[each[:count] for count in range(len(each), -1, -1)] for each in labels]
        keys = [next(filter(self._rows_by_kind.__contains__, listed)) for listed in groups]
        flags = {}
        for name in names:
            places = self._codes(name).places
            codes = [places.get(cell, UNKNOWN) for cell in machines[name].tolist()]
            flags[name] = np.array(
                [self._is_found(name, key)[code] for code, key in zip(codes, keys, strict=True)], dtype=bool
            )
        return flags

    def _flag_values(self, name: str, key: tuple[Any, ...]) -> np.ndarray:
        """Return which codes of a column some rows have, (distinct values + 2,) bool, those of no value last."""
        coded = self._codes(name)
        is_measured = np.zeros(len(coded.values) + 2, dtype=bool)
        is_measured[coded.codes[self._rows_by_kind[key]]] = True
        is_measured[-2:] = False
        return is_measured

    @cached_property
    def _rows_by_kind(self) -> dict[tuple[Any, ...], np.ndarray]:
        """The rows by task, by task and vendor and so on, where they are enough; all rows under ()."""
        frame = self.measured.frame
        levels = [self.measured.column_of(Tag.TASK), *entity_slices(self.measured)]
        rows: dict[tuple[Any, ...], np.ndarray] = {(): np.arange(len(frame))}
        for count in range(1, len(levels) + 1):
            indices = frame.groupby(levels[:count], observed=True).indices.items()
            named = ((key if isinstance(key, tuple) else (key,), numbers) for key, numbers in indices)
            rows |= {key: numbers for key, numbers in named if len(numbers) >= MIN_CANDIDATES}
        return rows

    def _find_rows(self, tag: Tag, value: str | None) -> np.ndarray:
        """Return the measured rows with a value of the tagged column."""
        return np.asarray(self._rows(self.measured.column_of(tag)).get(value, []), dtype=int)

    def find_typical_rows(self, targets: Sequence[str]) -> dict[str, int]:
        """Return the row of every task's median result of the last year, by the first target that the task has."""
        frame, times = self.measured.frame, self.measured.select(tag=Tag.TIME)
        is_recent = np.full(len(frame), True)
        if times:
            is_recent = (frame[times[0]] > frame[times[0]].max() - _YEAR).to_numpy(dtype=bool)
        scores = {name: frame[name].to_numpy(dtype=float) for name in targets}
        numbers, tasks = pd.factorize(frame[self.measured.column_of(Tag.TASK)], sort=True)
        typical_rows = {}
        for number, task in enumerate(tasks):
            of_task = numbers == number
            has_score = (of_task & ~np.isnan(values) for values in scores.values())
            target, rows = next(
                ((name, rows) for name, rows in zip(scores, has_score, strict=True) if rows.any()), ("", of_task)
            )
            if target:
                last = np.flatnonzero(rows & is_recent)
                among = last if len(last) else np.flatnonzero(rows)
                ordered = among[np.argsort(scores[target][among], kind="stable")]
                typical_rows[str(task)] = int(ordered[len(ordered) // 2])
        return typical_rows

    def save(self, folder: Path) -> None:
        """Write both as Parquet."""
        write_table(self.measured, folder / _MEASURED)
        with atomic_path(folder / _ENTITY_FACTS) as temporary:
            self.entity_facts.to_parquet(temporary)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        return cls(read_table(folder / _MEASURED), read_parquet(folder / _ENTITY_FACTS))


def _newest(standard: Table) -> pd.Index:
    """Return the rows that are kept, in the order of the table; rows of one age are drawn by a fixed hash."""
    frame = standard.frame
    if len(frame) <= MAX_RESULTS:
        return frame.index
    times = standard.select(tag=Tag.TIME)
    chance = pd.util.hash_pandas_object(frame[standard.column_of(Tag.ROW)], index=False)
    by_age = chance.to_frame("chance").assign(
        when=frame[times[0]] if times else 0,
        task=frame[standard.column_of(Tag.TASK)].astype("str"),
        entity=frame[standard.column_of(Tag.ENTITY)].astype("str"),
    )
    by_age = by_age.sort_values(["when", "chance"], ascending=[False, True])
    # the first of every entity and task, then the second; within each turn, the tasks alternate
    by_age["turn"] = by_age.groupby(["entity", "task"], dropna=False).cumcount()
    by_age["place"] = by_age.groupby(["turn", "task"], dropna=False).cumcount()
    return by_age.sort_values(["turn", "place"], kind="stable").index[:MAX_RESULTS].sort_values()


def describing_columns(standard: Table, features: Sequence[str]) -> list[Column]:
    """Return the columns that may describe a machine: features, keys, and what fields and feature modules read."""
    further = {name for field in find_rules(standard.dataset).names.fields for name in field.columns}
    dates = {name for module in features for name in plugins.load("features", module).REQUIRES}
    return [
        column
        for column in standard.columns
        if column.role in (Role.FEATURE, Role.KEY)
        or column.name in further
        or (column.kind is Kind.DATE and column.name in dates)
    ]
