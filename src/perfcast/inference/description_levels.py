"""Levels of description: how much of a machine its user gives, from its name to everything that is published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pandas as pd

from perfcast.inference.imputation import DescriptionRules
from perfcast.inference.machine_files import MachineEntry
from perfcast.schema.table import Kind, Table, Tag


def list_levels(table: Table, rules: DescriptionRules, describing: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the columns that are given at every level, those of the levels before included; none without levels.

    Args: `describing` are all columns that may describe a machine. The last level gives all of them but those that the
    name of the entity tells. Every level gives the task.
    """
    if not rules.description_levels:
        return ()
    given: list[str] = [table.column_of(Tag.TASK)]
    levels = []
    for columns in rules.description_levels:
        given += [name for name in columns if name in describing]
        levels.append(tuple(given))
    everything = [name for name in describing if name not in (*given, *rules.named_columns)]
    return (*levels, (*given, *everything))


def find_level(given: Collection[str], levels: Sequence[Collection[str]]) -> int:
    """Return the number, from 1, of the level whose columns agree best with the given ones.

    Agreement is Jaccard's index: columns in both over columns in either. The lower level wins a tie.
    """
    wanted = set(given)
    agreement = [len(wanted & set(columns)) / len(wanted | set(columns)) for columns in levels]
    return 1 + agreement.index(max(agreement))


def describe_rows(frame: pd.DataFrame, table: Table, columns: Sequence[str]) -> Iterator[MachineEntry]:
    """Yield every row as a user would type it, with the known cells of some columns; lines are numbered from 0."""
    dates = {column.name for column in table.columns if column.kind is Kind.DATE}
    names = [name for name in columns if name in frame]
    for line, cells in enumerate(frame[names].itertuples(index=False, name=None)):
        values: dict[str, object] = {
            name: f"{cell:%Y-%m}" if name in dates else cell
            for name, cell in zip(names, cells, strict=True)
            if not pd.isna(cell)
        }
        yield MachineEntry(line, f"machine {line}", values)
