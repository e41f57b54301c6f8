"""List of the facts of one CPU model from all tables, those that count first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from perfcast.data.processors.catalog import FACTS, KNOWN_FROM, Catalog, read_catalog
from perfcast.data.processors.cpu_names import cpu_model_key, find_family
from perfcast.data.processors.facts import UNITS, Fact, read_facts


def list_facts(name: str, stated: Sequence[Fact], catalog_folder: Path) -> list[Fact]:
    """Return the facts of a CPU model, one by name: of the user, the table of models, the catalogs, the family.

    Args: `stated` are facts of a user; `catalog_folder` holds the public catalogs, or does not exist.
    """
    key = cpu_model_key(name)
    family = next((fact.family for fact in stated if fact.cpu_model == key and fact.family), find_family(key) or "")
    groups = (
        (fact for fact in stated if fact.cpu_model == key),
        (fact for fact in read_facts("cpu_models.csv") if fact.cpu_model == key),
        _list_catalog(key, read_catalog(catalog_folder)) if catalog_folder.is_dir() else (),
        (f for f in read_facts("exceptions.csv") if f.family == family and re.match(f.cpu_model, key)),
        (fact for fact in read_facts("families.csv") if fact.family == family),
        (fact for fact in read_facts("caches.csv") if fact.family == family),
    )
    first: dict[str, Fact] = {}
    for group in groups:
        for fact in group:
            first.setdefault(fact.name, fact)
    return list(first.values())


def _list_catalog(key: str, catalog: Catalog) -> Iterator[Fact]:
    row = catalog.lookup([key]).iloc[0]
    days = catalog.facts[KNOWN_FROM]
    day = days[key] if key in days.index else None
    for fact in FACTS:
        if pd.notna(row[fact]):
            value = (
                f"{row[fact]:%Y-%m-%d}" if isinstance(row[fact], pd.Timestamp) else f"{row[fact]}".removesuffix(".0")
            )
            source = "public catalogs" if row["table"] == "twin" else f"public catalog: {row['table']}"
            yield Fact(key, "", fact, value, UNITS.get(fact, ""), day, source, 1)
