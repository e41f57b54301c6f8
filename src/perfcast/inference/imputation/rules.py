"""Base class of imputation rules: what varies by dataset when missing cells of a described machine are filled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import pandas as pd

from perfcast.inference.machine_fields import Field


@dataclass(frozen=True)
class Block:
    """Columns that hot-deck imputation takes together from one measured result.

    `columns`: the most important first. `ladder`: sets of columns in which donors must equal the machine, the
    strictest first. `recent`: whether only the last year of results may donate (software changes) or all of them (a
    memory module does not).
    """

    name: str
    columns: tuple[str, ...]
    ladder: tuple[tuple[str, ...], ...]
    recent: bool


class Violation(NamedTuple):
    """A machine that breaks a limit.

    `columns`: columns of the wrong value; the message names the first that the user typed. `fact`: the wrong value and
    the rule; `{cpu}` in it stands for the CPU model. `remedy`: what the user can do.
    """

    line: int
    columns: tuple[str, ...]
    fact: str
    remedy: str


class ImputationRules:
    """Rules of a dataset without knowledge about machines: nothing is filled and nothing is refused.

    Methods that fill take and return a frame with every standard column; they fill missing cells, change no given one,
    and return the same frame where there is nothing to fill.
    """

    fields: ClassVar[tuple[Field, ...]] = ()
    """Short fields beside the columns."""
    task_aliases: ClassVar[Mapping[str, str]] = {}
    """Other names of tasks, such as those of the publisher of the results."""
    new_cpu_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that an unknown CPU model requires, each with the columns that may give it."""
    design_column: ClassVar[str | None] = None
    """Column of the CPU's design, whose value must have been measured. None: any name of a CPU model is accepted."""
    blocks: ClassVar[tuple[Block, ...]] = ()
    """Blocks of hot-deck imputation, in this order: later ones may use what earlier ones filled."""
    power_columns: ClassVar[tuple[str, ...]] = ()
    """Columns whose product stands for the power of a machine where the user gives none. Units: W."""
    power_meaning: ClassVar[str] = ""
    """What the product of `power_columns` includes."""
    capacities: ClassVar[Mapping[str, str]] = {}
    """Columns that the CPU model bounds, with its own column: a larger value means another CPU model."""
    replaced: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By varied column: columns that are derived anew even where the user gave them, since they would contradict it."""
    adapted: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By varied column: columns that are derived anew where the user did not give them."""

    def read_cpu_facts(self, raw: Mapping[str, Path], measured: Iterable[str]) -> pd.DataFrame:
        """Return the facts of every listed or measured CPU model, one row per key (index), with standard columns.

        `raw` maps the ingested sources to their folders.
        """
        return pd.DataFrame()

    def fill_cpu_facts(self, frame: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
        """Fill what is known of the CPU models; `facts` is the table of `read_cpu_facts`."""
        return frame

    def fill_implied(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Fill what other cells of the same row imply."""
        return frame

    def fill_usual(self, frame: pd.DataFrame, last: pd.Timestamp) -> pd.DataFrame:
        """Fill usual values that need no donor; `last` is the month of the newest result."""
        return frame

    def find_violations(self, frame: pd.DataFrame) -> Iterator[Violation]:
        """Yield every limit that a row breaks; `Violation.line` is its index."""
        yield from ()

    def give_per_chip(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Convert totals into values of one processor, so that the number of processors may vary."""
        return frame


def fill_missing(frame: pd.DataFrame, values: Mapping[str, pd.Series]) -> pd.DataFrame:
    """Fill the missing cells of the frame's columns; without a cell to fill, return the same frame."""
    filled = {}
    for name, candidates in values.items():
        if name in frame:
            column = frame[name]
            missing = column.array.isna()
            if missing.any() and not candidates.array[missing].isna().all():
                filled[name] = column.where(~missing, candidates)
    return frame.assign(**filled) if filled else frame
