"""The table of facts of a user: one CSV line per CPU model, checked like the tables of the project.

A champion takes them into its reference data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from perfcast.domains.servers.processors.cpu_models import COLUMNS_OF_FACTS
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.domains.servers.processors.facts import (
    LIMITS,
    NAMES,
    PROVENANCE,
    QUALITIES,
    UNITS,
    Fact,
    family_table,
    look_up_facts,
    parse_facts,
)
from perfcast.sources.bounded_files import PLAIN, header_of, records, text_lines, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    from perfcast.inference.champion import Champion

FACTS_OF_MODELS = (
    "cores_per_chip",
    "base_mhz",
    "max_turbo_mhz",
    "all_core_turbo_mhz",
    "l2_kb_per_core",
    "l3_mb_per_chip",
    "tdp_w",
    "max_sockets",
    "list_price_usd",
    "ddr_gen",
    "channels_per_chip",
    "max_mts_1dpc",
    "max_mts_2dpc",
    "mrdimm_mts",
    "simd_bits",
    "fma_units",
    "amx",
    "pcie_gen",
)
"""Facts that a user may state of a CPU model, in the order of the table's columns."""
COLUMNS = ("cpu_model", "family", *FACTS_OF_MODELS, *PROVENANCE)
WHOLE = frozenset(row["name"] for row in NAMES if row["whole"])
"""Facts that are whole numbers."""
YEARS = (1970, 2100)
_LETTERS = 200
"""Longest text of a cell."""
_NAME = re.compile(r"[^\W_].*")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


def read_user_facts(path: Path) -> tuple[Fact, ...]:
    """Return the facts of a user's table, by keys of CPU models.

    Raises: UserError for an absent file, a file that is no table of facts, or a line with a problem.
    """
    rows = _read_rows(path)
    problems = [problem for number, row in rows for problem in find_row_problems(row, f"{path}, line {number}")]
    facts: tuple[Fact, ...] = ()
    if not problems:
        facts = tuple(parse_facts({**row, "cpu_model": cpu_model_key(row["cpu_model"])} for _, row in rows))
        problems = list(find_fact_problems(facts))
    if problems:
        raise UserError(f"{path} must be a table of facts", problems[0], "correct it")
    return facts


def _read_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Return the lines of a table with their numbers."""
    if not Path(path).is_file():
        raise UserError("a table of facts must exist", f"there is no {path}", "write one, or correct the name")
    remedy = "the first line names the columns: " + ",".join(COLUMNS)
    with unpacked(Path(path), PLAIN, most=size_limits.TABLE, remedy=remedy) as file:
        lines = text_lines(file, Path(path).name, remedy=remedy)
        header = header_of(next(lines, ""), Path(path).name, remedy=remedy)
        unknown = [name for name in header if name not in COLUMNS]
        if "cpu_model" not in header or unknown:
            fact = f"it has the column {unknown[0]!r}" if unknown else "it has no column cpu_model"
            raise UserError(f"{path} must have the columns of facts", fact, remedy)
        if twice := [name for name in header if header.count(name) > 1]:
            raise UserError(f"{path} must have every column once", f"it has {twice[0]!r} twice", remedy)
        rows = []
        for number, record in records(lines, Path(path).name, remedy=remedy):
            fields = [field.strip() for field in record]
            if any(fields[len(header) :]):
                fact = f"line {number} has {len(fields)}, the first line {len(header)}"
                raise UserError(f"every line of {path} must have as many fields as columns", fact, remedy)
            if any(fields):
                rows.append((number, dict(zip(header, fields, strict=False))))
        return rows


def find_row_problems(row: Mapping[str, str], place: str) -> Iterator[str]:
    """Yield what is wrong with one line: an unknown fact, family or quality, a value that is none, a missing day."""
    name = row.get("cpu_model", "").strip()
    if not name:
        yield f"{place}: cpu_model is missing"
        return
    if problem := next(filter(None, (_find_text_problem(*cell) for cell in row.items())), None):
        yield f"{place}: {problem}"
        return
    if not _NAME.fullmatch(name) or not cpu_model_key(name):
        yield f"{place}: cpu_model must begin with a letter or a digit, but it is {name!r}"
        return
    if not _is_day(row.get("known_from", "")):
        years = f"from {YEARS[0]} to {YEARS[1]}"
        yield f"{place}: known_from must be a day, YYYY-MM-DD, {years}, but it is {row.get('known_from', '')!r}"
    if not row.get("source", "").strip():
        yield f"{place}: source is missing"
    if row.get("quality", "") not in {"", *map(str, QUALITIES)}:
        yield f"{place}: quality must be 0, 1 or 2, but it is {row['quality']!r}"
    family = row.get("family") or find_family(cpu_model_key(row["cpu_model"]))
    if family not in family_table():
        fact = f"{row['family']!r} is unknown" if row.get("family") else f"no rule names that of {row['cpu_model']!r}"
        yield f"{place}: family must be one of families.csv, but {fact}"
    stated = {name: value for name, value in row.items() if value and name not in ("cpu_model", "family", *PROVENANCE)}
    if not stated:
        yield f"{place}: no fact is stated"
    for name, value in stated.items():
        if name not in FACTS_OF_MODELS:
            yield f"{place}: {name!r} is no fact of a CPU model"
        elif problem := find_value_problem(name, value):
            yield f"{place}: {problem}"


def _find_text_problem(name: str, text: str) -> str | None:
    """Return what is wrong with the text of any cell: too long, not to be printed, or not UTF-8."""
    if len(text) > _LETTERS:
        return f"{name} must have at most {_LETTERS} letters, but it has {len(text)}"
    hidden = next((letter for letter in text if not letter.isprintable() or letter == "\ufffd"), None)
    return f"{name} must be UTF-8 text that can be printed, but it has {hidden!a} in it" if hidden else None


def _is_day(text: str) -> bool:
    try:
        return bool(_DAY.fullmatch(text)) and YEARS[0] <= date.fromisoformat(text).year <= YEARS[1]
    except ValueError:
        return False


def find_value_problem(name: str, value: str) -> str | None:
    """Return what is wrong with the value of a numerical fact, None for a plausible one."""
    low, high = LIMITS.get(name, (-math.inf, math.inf))
    try:
        number = float(value) if value.isascii() and "_" not in value else math.nan
    except ValueError:
        number = math.nan
    whole = name in WHOLE
    if low <= number <= high and (not whole or number.is_integer()):
        return None
    return (
        f"{name} must be a {'whole ' if whole else ''}number from {low:g} to {high:g} {UNITS[name]}".rstrip()
        + f", but it is {value!r}"
    )


def find_fact_problems(facts: Sequence[Fact]) -> Iterator[str]:
    """Yield the facts that are stated twice, with their values."""
    first: dict[tuple[str, str, str], Fact] = {}
    for fact in facts:
        other = first.setdefault((fact.cpu_model, fact.family, fact.name), fact)
        if other is not fact:
            yield f"{fact.cpu_model or fact.family}: {fact.name} is {' and '.join(sorted((other.value, fact.value)))}"


def add_user_facts(champion: Champion, facts: Sequence[Fact]) -> Champion:
    """Return the champion with the facts of a user, which replace those that it has.

    A CPU model that the champion does not list gets the facts of its family first. A champion of machines without facts
    of processors stays as it is.
    """
    listed = champion.reference_data.entity_facts
    if "family" not in listed or not facts:
        return champion
    rows: dict[str, dict[str, object]] = {}
    for fact in facts:
        if fact.cpu_model not in rows:
            rows[fact.cpu_model] = _begin_row(fact, listed)
        column = COLUMNS_OF_FACTS.get(fact.name)
        if column in listed:
            rows[fact.cpu_model][str(column)] = fact.number
    stated = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=listed.columns)
    others = listed.drop(index=[key for key in rows if key in listed.index])
    merged = pd.concat([stated.astype(object), others.astype(object)]).astype(listed.dtypes.to_dict())
    merged.index.name = listed.index.name
    reference_data = replace(
        champion.reference_data, entity_facts=merged, user_facts=tuple(facts), user_entities=frozenset(rows)
    )
    # typical machines rest on the facts
    return replace(champion, reference_data=reference_data, saved_typical=None)


def _begin_row(fact: Fact, listed: pd.DataFrame) -> dict[str, object]:
    """Return the cells of a CPU model that are known without its own facts."""
    if fact.cpu_model in listed.index:
        return dict(listed.loc[fact.cpu_model])
    family_facts = look_up_facts(fact.cpu_model, family=fact.family or None)
    row: dict[str, object] = {
        column: family_facts[name] for name, column in COLUMNS_OF_FACTS.items() if family_facts.get(name) is not None
    }
    if fact.known_from is not None:
        row["launch_quarter"] = fact.known_from.to_period("Q").start_time
    return row
