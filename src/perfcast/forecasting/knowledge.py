"""What a champion knows beside its model: every measured result, and the facts of every named part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pandas as pd

from perfcast import plugins
from perfcast.describing.fields import Field
from perfcast.describing.names import PartNames
from perfcast.io import atomic_path
from perfcast.schema import Column, Kind, Role, Table, Tag
from perfcast.table_files import read_parquet, read_table, write_table

_MEASURED, _PARTS = "measured.parquet", "parts.parquet"
_SET_ASIDE = "set_aside"
_YEAR = pd.DateOffset(months=12)
MOST_RESULTS = 100_000
"""Results that are known at most, so that a forecast takes no longer however many are measured."""

_SHOWN = ("system_stem",)
"""Columns beside those that a forecast reads that a measured machine is shown with."""


@dataclass(frozen=True)
class Knowledge:
    """Measured results with their standard columns, and facts by part (index), empty where no table knows parts."""

    measured: Table
    parts: pd.DataFrame

    @classmethod
    def gather(cls, standard: Table, raw: Mapping[str, Path], features: Sequence[str]) -> Self:
        """Take from a standard table what forecasts read and show, and from the ingested sources the facts of parts.

        Of more than `MOST_RESULTS` results the newest of every part and task are taken, as many of one as of the other.
        """
        asked = {column.name for column in describing_columns(standard, features)}
        kept = [
            column
            for column in standard.columns
            if column.name in asked or column.role is Role.TARGET or Tag.TIME in column.tags or column.name in _SHOWN
        ]
        names = [column.name for column in kept]
        facts = {_SET_ASIDE: sorted({column.name for column in standard.columns} - set(names))}
        frame = standard.frame.loc[_newest(standard), names].reset_index(drop=True)
        measured = Table(standard.dataset, frame, tuple(kept), facts)
        module = completion_of(standard.dataset)
        entities = standard.frame[standard.column_of(Tag.ENTITY)].dropna().unique()
        return cls(measured, module.parts(raw, entities) if module else pd.DataFrame())

    @property
    def part_names(self) -> PartNames:
        """The names that parts are known by, the most measured first."""
        counts = self.measured.frame[self.measured.column_of(Tag.ENTITY)].astype("str").value_counts()
        return PartNames([*counts.index, *self.parts.index])

    @property
    def set_aside(self) -> frozenset[str]:
        """The names of standard columns that no forecast reads: a file of measurements may have them."""
        return frozenset(self.measured.facts.get(_SET_ASIDE, ()))

    def agreed(self, tag: Tag, value: str) -> Mapping[str, Any]:
        """Return the features of the tagged column's group in which all measured rows of one of its values agree.

        The values are cells by name; a feature that the rows do not state, or differ on, is none of them.
        """
        key = (tag, value)
        if key not in self._agreed:
            by = self.measured.column_of(tag)
            group = next(column.group for column in self.measured.columns if column.name == by)
            names = [name for name in self.measured.select(role=Role.FEATURE, group=group) if name != by]
            if tag not in self._rows:
                self._rows[tag] = self.measured.frame.groupby(by).indices
            rows = self.measured.frame[names].iloc[self._rows[tag].get(value, [])]
            known = {name: rows[name].dropna().unique() for name in names}
            self._agreed[key] = {name: cells[0] for name, cells in known.items() if len(cells) == 1}
        return self._agreed[key]

    @cached_property
    def _agreed(self) -> dict[tuple[Tag, str], Mapping[str, Any]]:
        return {}

    @cached_property
    def _rows(self) -> dict[Tag, Any]:
        return {}

    def typical(self, targets: Sequence[str]) -> dict[str, int]:
        """Return the row of every task with its median result of the last year, by the first target that it has."""
        frame = self.measured.frame
        times = self.measured.select(tag=Tag.TIME)
        recent = frame[times[0]] > frame[times[0]].max() - _YEAR if times else pd.Series(True, frame.index)
        found = {}
        for task, rows in frame.groupby(frame[self.measured.column_of(Tag.TASK)].astype(str), sort=True):
            target = next((name for name in targets if rows[name].notna().any()), None)
            if target is None:
                continue
            last = rows[recent[rows.index] & rows[target].notna()]
            scores = (last if len(last) else rows)[target].dropna().sort_values(kind="stable")
            found[str(task)] = int(scores.index[len(scores) // 2])
        return found

    def save(self, folder: Path) -> None:
        """Write both as Parquet."""
        write_table(self.measured, folder / _MEASURED)
        with atomic_path(folder / _PARTS) as temporary:
            self.parts.to_parquet(temporary)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        return cls(read_table(folder / _MEASURED), read_parquet(folder / _PARTS))


def _newest(standard: Table) -> pd.Index:
    """Return which rows are taken, in the order of the table; of rows of one age, chance that is always the same."""
    frame = standard.frame
    if len(frame) <= MOST_RESULTS:
        return frame.index
    times = standard.select(tag=Tag.TIME)
    chance = pd.util.hash_pandas_object(frame[standard.column_of(Tag.ROW)], index=False)
    by_age = chance.to_frame("chance").assign(
        when=frame[times[0]] if times else 0,
        task=frame[standard.column_of(Tag.TASK)].astype("str"),
        part=frame[standard.column_of(Tag.ENTITY)].astype("str"),
    )
    by_age = by_age.sort_values(["when", "chance"], ascending=[False, True])
    # the first of every part and task, then the second: and of each turn, the tasks by turns
    by_age["turn"] = by_age.groupby(["part", "task"], dropna=False).cumcount()
    by_age["place"] = by_age.groupby(["turn", "task"], dropna=False).cumcount()
    return by_age.sort_values(["turn", "place"], kind="stable").index[:MOST_RESULTS].sort_values()


def completion_of(dataset: str) -> ModuleType | None:
    """Return the module that knows about machines of a data set, None where there is none."""
    return plugins.load("completion", dataset) if dataset in plugins.names("completion") else None


def fields_of(dataset: str) -> tuple[Field, ...]:
    """Return what machines of a data set may be described by beside its columns."""
    module = completion_of(dataset)
    return module.FIELDS if module else ()


def describing_columns(standard: Table, features: Sequence[str]) -> list[Column]:
    """Return the columns a machine can be described by: features, keys, and what fields and feature modules read."""
    further = {name for field in fields_of(standard.dataset) for name in field.columns}
    dates = {name for module in features for name in plugins.load("features", module).REQUIRES}
    return [
        column
        for column in standard.columns
        if column.role in (Role.FEATURE, Role.KEY)
        or column.name in further
        or (column.kind is Kind.DATE and column.name in dates)
    ]
