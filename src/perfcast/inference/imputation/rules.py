"""Base class of imputation rules: what varies by dataset when missing cells of a described machine are filled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from perfcast.data.processors.facts import Fact
from perfcast.inference.cells import Cells, is_missing, list_rows, mask_cells, read_column
from perfcast.inference.coded_frame import CodedFrame
from perfcast.inference.imputation.joint_draws import JointRules
from perfcast.inference.machine_fields import Cell, Field
from perfcast.schema.table import Table, Tag


@dataclass(frozen=True)
class Block:
    """Columns that hot-deck imputation takes together from one measured result.

    `columns`: the most important first. `ladder`: sets of columns in which donors must equal the machine, the
    strictest first. `recent`: whether only the last year of results may donate (software changes) or all of them (a
    memory module does not). `new_cpu`: whether only machines whose CPU model has no measured result receive.
    """

    name: str
    columns: tuple[str, ...]
    ladder: tuple[tuple[str, ...], ...]
    recent: bool
    new_cpu: bool = False


class Violation(NamedTuple):
    """A machine that breaks a limit.

    `columns`: columns of the wrong value; the message names the first that the user typed. `fact`: the wrong value and
    the rule; `{cpu}` in it stands for the CPU model. `remedy`: what the user can do.
    """

    line: int
    columns: tuple[str, ...]
    fact: str
    remedy: str


class NamedCpu(NamedTuple):
    """CPU model that no data names: its normalized name, the design that the name tells ("" for none), and cells."""

    name: str
    design: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class FactSource:
    """Facts of one subject, a CPU model or a family, that one source made public on one day."""

    subject: str
    known_from: str
    source: str
    facts: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """Command that would measure a task of a machine, and the lines of its configuration."""

    task: str
    command: str
    configuration: str


class CpuFacts:
    """Facts of CPU models, by name, as arrays of the kind of the columns that they fill."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._places = {name: place for place, name in enumerate(frame.index)}
        self._columns: dict[str, np.ndarray] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def look_up(self, names: Sequence[str | None], like: Cells) -> dict[str, np.ndarray]:
        """Return the facts of CPU models by column of `like`, (n,) each, missing for an unlisted model."""
        places = np.array([self._places.get(name, -1) for name in names], dtype=int)
        listed = [str(name) for name in self.frame if name in like]
        return {name: self._column(name, like[name].dtype)[places] for name in listed}

    def _column(self, name: str, dtype: np.dtype) -> np.ndarray:
        """Return a column of facts, and a missing one at its end."""
        if name not in self._columns:
            facts = self.frame[name].astype(object if dtype.kind == "O" else dtype)
            typed = read_column(facts)
            self._columns[name] = np.append(typed, mask_cells(typed[:1], np.array([True])))
        return self._columns[name]


class ImputationRules:
    """Rules of a dataset without knowledge about machines: nothing is filled and nothing is refused.

    Methods that fill take and return every standard column; they fill missing cells, change no given one, and return
    the same object where there is nothing to fill.
    """

    fields: ClassVar[tuple[Field, ...]] = ()
    """Short fields beside the columns."""
    task_aliases: Mapping[str, str] = MappingProxyType({})
    """Other names of tasks, such as those of the publisher of the results."""
    new_cpu_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that a CPU model of unknown design requires, each with the columns that may give it."""
    new_cpu_hints: ClassVar[tuple[str, ...]] = ()
    """Fields that narrow the interval of an unknown CPU model, the most important first."""
    design_column: ClassVar[str | None] = None
    """Column of the CPU's design, whose value must have been measured. None: any name of a CPU model is accepted."""
    blocks: ClassVar[tuple[Block, ...]] = ()
    """Blocks of hot-deck imputation, in this order: later ones may use what earlier ones filled."""
    joint: ClassVar[JointRules | None] = None
    """Rules of joint draws; without them, a machine is imputed once."""
    setup_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that name the compiler: published results of a machine are summarized by them."""
    description_levels: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Columns that users give, level by level, each level with those before it. A last level gives everything."""
    named_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that the name of the CPU model tells: no level of description gives them."""
    power_columns: ClassVar[tuple[str, ...]] = ()
    """Columns whose product stands for the power of a machine where the user gives none. Units: W."""
    power_meaning: ClassVar[str] = ""
    """What the product of `power_columns` includes."""
    capacities: ClassVar[Mapping[str, str]] = {}
    """Columns that the CPU model bounds, with its own column: a larger value means another CPU model."""
    largest_values: ClassVar[Mapping[str, str]] = {}
    """Columns with the column of the CPU model that has their largest possible value, beside `capacities`."""
    replaced: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By varied column: columns that are derived anew even where the user gave them, since they would contradict it."""
    adapted: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By varied column: columns that are derived anew where the user did not give them."""

    def read_cpu_facts(
        self, raw: Mapping[str, Path], measured: Iterable[str], as_of: pd.Timestamp | None = None
    ) -> pd.DataFrame:
        """Return the facts of every listed or measured CPU model, one row per key (index), with standard columns.

        `raw` maps the ingested sources to their folders. Only facts that were public before `as_of` count.
        """
        return pd.DataFrame()

    def read_cpu_name(self, name: str) -> NamedCpu:
        """Return what the typed name of an unlisted CPU model tells."""
        return NamedCpu(name, "", {})

    def list_fact_sources(
        self, cells: Mapping[str, Any], cpu_facts: pd.DataFrame, user_facts: Sequence[Fact] = ()
    ) -> tuple[FactSource, ...]:
        """Return the dated facts on the CPU model of a machine, the newest first.

        Args: `cpu_facts` is the table of `read_cpu_facts`, `user_facts` those of a user's table, which count first.
        """
        return ()

    def describe_check(self, task: str, cells: Mapping[str, Any]) -> Check | None:
        """Return how to measure a task of a machine, None where no command is known."""
        return None

    def fill_cpu_facts(self, cells: Cells, facts: CpuFacts) -> Cells:
        """Fill what is known of the CPU models; `facts` is the table of `read_cpu_facts`."""
        return cells

    def fill_implied(self, cells: Cells) -> Cells:
        """Fill what other cells of the same row imply."""
        return cells

    def fill_usual(self, cells: Cells, last: pd.Timestamp) -> Cells:
        """Fill usual values that need no donor; `last` is the month of the newest result."""
        return cells

    def find_violations(self, cells: Cells) -> Iterator[Violation]:
        """Yield every limit that a row breaks; `Violation.line` is its index."""
        yield from ()

    def list_notes(self, cells: Mapping[str, Cell]) -> Iterator[str]:
        """Yield remarks on the given cells of a machine that is unusual but possible."""
        yield from ()

    def give_per_chip(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Convert totals into values of one processor, so that the number of processors may vary."""
        return frame


_RECENT = pd.DateOffset(months=12)


class HotDeck:
    """Measured results that may donate their cells.

    The donor is the most frequent combination of the block's columns among the results that match.
    Source: Andridge and Little, "A review of hot deck imputation", Int. Stat. Rev. 78, 2010.
    """

    def __init__(self, measured: Table, until: pd.Timestamp | None = None) -> None:
        """Keep the results published until a month, all without one."""
        time = measured.select(tag=Tag.TIME)
        frame = measured.frame
        if time and until is not None:
            frame = frame[frame[time[0]] <= until]
        self.frame = frame.reset_index(drop=True)
        self.last = pd.Timestamp(self.frame[time[0]].max()) if time else pd.Timestamp.min
        self._recent = (self.frame[time[0]] > self.last - _RECENT).to_numpy() if time else np.ones(len(frame), bool)
        entity = measured.select(tag=Tag.ENTITY)
        self._entity = entity[0] if entity else ""
        self._measured = frozenset(self.frame[self._entity].dropna().unique()) if entity else frozenset()
        self._coded = CodedFrame(self.frame)
        self._numbers: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._donor_by_key: dict[tuple[object, ...], Mapping[str, Any] | None] = {}

    def fill(self, machines: Cells, block: Block) -> Cells:
        """Return the machines with the missing cells of a block filled where a result matches them."""
        columns = [name for name in block.columns if name in machines]
        missing = {name: is_missing(machines[name]) for name in columns}
        incomplete = np.any(list(missing.values()), axis=0)
        if block.new_cpu:
            incomplete &= [model not in self._measured for model in machines[self._entity].tolist()]
        if not incomplete.any():
            return machines
        ladder = sorted({name for step in block.ladder for name in step})
        names = [*columns, *(name for name in ladder if name not in columns)]
        recipients = np.flatnonzero(incomplete)
        rows = list_rows({name: machines[name][recipients] for name in names}, names)
        donor_by_row = {row: self._find_donor(block, columns, dict(zip(names, row, strict=True))) for row in set(rows)}
        filled = {name: machines[name].copy() for name in columns if missing[name].any()}
        for place, row in zip(recipients.tolist(), rows, strict=True):
            donor = donor_by_row[row]
            if donor is not None:
                for name, values in filled.items():
                    if missing[name][place]:
                        values[place] = donor[name]
        return machines.assign(filled) if any(donor is not None for donor in donor_by_row.values()) else machines

    def _find_donor(self, block: Block, columns: Sequence[str], cells: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the most frequent combination of the block's columns, None where no result matches the machine.

        Results that have all given cells are searched first, then those that have all but the last one, and so on.
        """
        key = (block.name, *cells.values())
        if key not in self._donor_by_key:
            known = [(name, cells[name]) for name in columns if cells[name] is not None]
            rows = self._find_rows(block, known, cells)
            if not len(rows):
                self._donor_by_key[key] = None
            else:
                numbers, first = self._combinations(block)
                row = first[np.bincount(numbers[rows]).argmax()]
                self._donor_by_key[key] = {name: self._read_cell(name, row) for name in block.columns}
        return self._donor_by_key[key]

    def _find_rows(self, block: Block, known: Sequence[tuple[str, Any]], cells: Mapping[str, Any]) -> np.ndarray:
        """Return the results that agree with the machine in as many of the first known cells as any do."""
        best, best_count = np.zeros(0, dtype=int), -1
        for step in block.ladder:
            if any(cells[name] is None for name in step):
                continue
            rows, count = np.flatnonzero(self._recent) if block.recent else np.arange(len(self.frame)), 0
            for name in step:
                rows = rows[self._coded.equals(name, cells[name], rows)]
            for name, value in known if len(rows) else ():
                narrower = rows[self._coded.equals(name, value, rows)]
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

    def _combinations(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of every result's combination of the block's columns, and the first row of each."""
        if block.name not in self._numbers:
            groups = self.frame.groupby(list(block.columns), dropna=False, sort=True)
            numbers = groups.ngroup().to_numpy()
            self._numbers[block.name] = numbers, np.unique(numbers, return_index=True)[1]
        return self._numbers[block.name]
