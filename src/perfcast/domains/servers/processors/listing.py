"""List of the facts of one CPU model from all tables, those that count first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.domains.servers.processors.catalog import FACTS, KNOWN_FROM, read_catalog
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.domains.servers.processors.facts import UNITS, Fact, read_facts
from perfcast.domains.servers.processors.families import find_launch

_LAUNCH = "launch_quarter"


def list_facts(name: str, stated: Sequence[Fact], listed: Iterable[Fact], family: str | None = None) -> list[Fact]:
    """Return the facts of a CPU model, one by name: of the user, the table of models, the catalogs, the family.

    Args: `stated` are facts of a user, `listed` those of the catalogs; `family` is by default that of the user's facts
    or of the name.
    """
    key = cpu_model_key(name)
    user_facts = [fact for fact in stated if fact.cpu_model == key]
    family = family or next((fact.family for fact in user_facts if fact.family), find_family(key) or "")
    groups = (
        user_facts,
        (fact for fact in read_facts("cpu_models.csv") if fact.cpu_model == key),
        listed,
        (f for f in read_facts("exceptions.csv") if f.family == family and re.match(f.cpu_model, key)),
        (fact for fact in read_facts("families.csv") if fact.family == family),
        (fact for fact in read_facts("caches.csv") if fact.family == family),
    )
    first: dict[str, Fact] = {}
    for group in groups:
        for fact in group:
            first.setdefault(fact.name, fact)
    return list(first.values())


def list_catalog_facts(name: str, folder: Path) -> Iterator[Fact]:
    """Yield the facts of the public catalogs on a CPU model; none where the folder does not exist."""
    if not folder.is_dir():
        return
    key, catalog = cpu_model_key(name), read_catalog(folder)
    row = catalog.lookup([key]).iloc[0]
    days = catalog.facts[KNOWN_FROM]
    day = days[key] if key in days.index else None
    for fact in FACTS:
        if pd.notna(row[fact]):
            source = "public catalogs" if row["table"] == "twin" else f"public catalog: {row['table']}"
            yield Fact(key, "", fact, _write(row[fact]), UNITS.get(fact, ""), day, source, 1)


def list_joined_facts(name: str, family: str, row: Mapping[str, Any], columns: Mapping[str, str]) -> Iterator[Fact]:
    """Yield the facts that a row of CPU facts has of the public catalogs, with the day of `Catalog.known_from`.

    Catalogs date no fact. Theirs are public from the last day of the launch quarter, or from the day of the family.
    Args: `columns` is the column of every fact.
    """
    launch, day, source = row.get(_LAUNCH), find_launch(family), "public catalogs; day of the family's launch"
    if pd.notna(launch):
        day, source = launch + pd.offsets.QuarterEnd(0), f"public catalogs; launch in {launch.year} Q{launch.quarter}"
    of_family = {fact.name for fact in read_facts("families.csv") if fact.family == family}
    for fact, column in columns.items():
        if fact in UNITS and fact not in of_family and pd.notna(row.get(column)):
            yield Fact(cpu_model_key(name), "", fact, _write(row[column]), UNITS[fact], day, source, 1)


def _write(value: Any) -> str:
    return f"{value:%Y-%m-%d}" if isinstance(value, pd.Timestamp) else f"{value}".removesuffix(".0")
