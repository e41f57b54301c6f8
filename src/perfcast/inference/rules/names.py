"""Names in descriptions of a dataset's machines: those of entities, of fields and of tasks."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from perfcast.inference.machine_fields import Cell, Field

_REMARKS = re.compile(r"\((?:r|tm|c)\)|[®™©\u200b]|\([^()]*\)|\[[^\[\]]*\]")
_DIGITS, _JOINTS = re.compile(r"\d+"), re.compile(r"[\s_.,;:/-]+")


class NamedEntity(NamedTuple):
    """Entity that no data names: its normalized name, the design that the name tells ("" for none), and cells."""

    name: str
    design: str
    cells: Mapping[str, Cell]


class Names:
    """Names of a dataset without knowledge about machines: columns name fields, and any name is an entity."""

    fields: tuple[Field, ...] = ()
    """Short fields beside the columns."""
    entity_name: str = "entity"
    """What the entity is, in messages."""
    named_field: str = ""
    """Field of the name in a short text of a machine; "" for the column of the entity."""
    naming_columns: tuple[str, ...] = ()
    """Columns that name a machine beside its entity."""
    named_columns: tuple[str, ...] = ()
    """Columns that the name of the entity tells: no level of description gives them."""
    task_aliases: Mapping[str, str] = MappingProxyType({})
    """Other names of tasks, such as those of the publisher of the results."""
    task_titles: Mapping[str, str] = MappingProxyType({})
    """Names of tasks in answers, where they are not the tasks' own."""
    group_columns: tuple[str, ...] = ()
    """Columns of `read_entity_facts` that group entities by names that people type, such as the family."""
    design_column: str | None = None
    """Column of the design, whose value must have been measured. None: any name of an entity is accepted."""
    new_entity_fields: Mapping[str, tuple[str, ...]] = {}
    """Fields that an entity of unknown design requires, each with the columns that may give it."""
    new_entity_hints: tuple[str, ...] = ()
    """Fields that narrow the interval of an unknown entity, the most important first."""
    description_levels: tuple[tuple[str, ...], ...] = ()
    """Columns that users give, level by level, each level with those before it. A last level gives everything."""

    def read_entity_name(self, name: str) -> NamedEntity:
        """Return what the typed name of an unlisted entity tells."""
        return NamedEntity(name, "", {})

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return the name of a machine by its entity and `naming_columns`; `entity` is the column of the entity."""
        return f"a new {entity}" if pd.isna(cells[entity]) else str(cells[entity])

    def read_key(self, name: str) -> str:
        """Return the join key of a typed name: marks and bracketed remarks removed, case folded; never empty."""
        folded = " ".join(name.casefold().split())
        return " ".join(_REMARKS.sub(" ", folded).split()) or folded

    def shorten_key(self, key: str) -> str:
        """Return a key without words that tell nothing."""
        return key

    def model_number(self, key: str) -> str:
        """Return the letters and digits of the model: the name from the first word with a digit, "" without any."""
        words = key.replace("_", " ").split()
        named = next((place for place, word in enumerate(words) if _DIGITS.search(word)), len(words))
        return _JOINTS.sub("", " ".join(words[named:]))

    def alias_tasks(self, tasks: list[str]) -> Mapping[str, str]:
        """Return other names of the measured tasks: `task_aliases`, or what their own names tell."""
        return self.task_aliases

    def read_files(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of a machine with the content of the files that they name.

        Raises: UserError for a file that cannot be used.
        """
        return dict(values)

    def read_this_machine(self, given: Container[str]) -> tuple[dict[str, object], str] | None:
        """Return the fields of this machine, without the columns that are given, and a text that describes them.

        None where this machine is none of the dataset.
        """
        return None
