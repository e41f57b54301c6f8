"""The table of facts of a user: one CSV line per CPU model, checked like the tables of the project."""

from __future__ import annotations

import csv
import fcntl
import io
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.domains.servers.processors.facts import (
    LIMITS,
    NAMES,
    PROVENANCE,
    QUALITIES,
    UNITS,
    Fact,
    parse_facts,
    read_facts,
)
from perfcast.domains.servers.processors.families import family_table
from perfcast.sources.bounded_files import PLAIN, header_of, records, text_lines, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path

FACTS_OF_MODELS = (
    *("cores_per_chip", "base_mhz", "max_turbo_mhz", "all_core_turbo_mhz", "l2_kb_per_core", "l3_mb_per_chip"),
    *("tdp_w", "max_sockets", "list_price_usd", "ddr_gen", "channels_per_chip", "max_mts_1dpc", "max_mts_2dpc"),
    *("mrdimm_mts", "simd_bits", "fma_units", "amx", "pcie_gen"),
)
"""Facts that a user may state of a CPU model, in the order of the table's columns."""
COLUMNS = ("cpu_model", "family", *FACTS_OF_MODELS, *PROVENANCE)
TABLES = ("families.csv", "caches.csv", "exceptions.csv", "cpu_models.csv", "cores.csv", "processes.csv")
"""The tables of the project."""
WHOLE = frozenset(row["name"] for row in NAMES if row["whole"])
"""Facts that are whole numbers."""
YEARS = (1970, 2100)
_REMEDY = "see `perfcast facts check`"
_LETTERS = 200
"""Longest text of a cell."""
_NAME = re.compile(r"[^\W_].*")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FORMULA = ("=", "+", "-", "@")
"""Beginnings of a cell that a spreadsheet computes."""


def read_user_facts(path: Path) -> tuple[Fact, ...]:
    """Return the facts of a user's table, by keys of CPU models.

    Raises: UserError for an absent file, a file that is no table of facts, or a line with a problem.
    """
    rows = _read_rows(path)
    problems = [problem for number, row in rows for problem in find_row_problems(row, f"{path}, line {number}")]
    if problems:
        raise UserError(f"{path} must be a table of facts", problems[0], _REMEDY)
    return tuple(parse_facts({**row, "cpu_model": cpu_model_key(row["cpu_model"])} for _, row in rows))


def _read_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Return the lines of a table with their numbers."""
    if not Path(path).is_file():
        raise UserError("a table of facts must exist", f"there is no {path}", "`perfcast facts add` begins one")
    remedy = "the first line names the columns: " + ",".join(COLUMNS)
    with unpacked(Path(path), PLAIN, most=size_limits.TABLE, remedy=remedy) as file:
        lines = text_lines(file, Path(path).name, remedy=remedy)
        header = header_of(next(lines, ""), Path(path).name, remedy=remedy)
        unknown = [name for name in header if name not in (*COLUMNS, "fact", "value", "unit")]
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
    elif row["source"].strip().startswith(_FORMULA):
        yield f"{place}: source must be text that no spreadsheet computes, but it is {row['source']!r}"
    if row.get("quality", "") not in {"", *map(str, QUALITIES)}:
        yield f"{place}: quality must be 0, 1 or 2, but it is {row['quality']!r}"
    family = row.get("family") or find_family(cpu_model_key(row["cpu_model"]))
    if family not in family_table():
        fact = f"{row['family']!r} is unknown" if row.get("family") else f"no rule names that of {row['cpu_model']!r}"
        yield f"{place}: family must be one of families.csv, but {fact}"
    cells = {row["fact"]: row.get("value", "")} if row.get("fact") else row
    subjects = ("cpu_model", "family", *PROVENANCE, "fact", "value", "unit")
    stated = {name: value for name, value in cells.items() if value and name not in subjects}
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
    """Yield what is wrong with facts together: stated twice, with two values, or without day, source or family."""
    counts = Counter((fact.cpu_model, fact.family, fact.name) for fact in facts)
    values: dict[tuple[str, str, str], set[str]] = {}
    for fact in facts:
        values.setdefault((fact.cpu_model, fact.family, fact.name), set()).add(fact.value)
        subject = fact.cpu_model or fact.family
        if fact.known_from is None or not fact.source:
            yield f"{subject}: {fact.name} has no {'day' if fact.known_from is None else 'source'}"
        if fact.number is not None and (problem := find_value_problem(fact.name, fact.value)):
            yield f"{subject}: {problem}"
    for key, count in counts.items():
        if count > 1:
            kind = "is stated twice" if len(values[key]) == 1 else f"is {' and '.join(sorted(values[key]))}"
            yield f"{key[0] or key[1]}: {key[2]} {kind}"


def find_contradictions(facts: Sequence[Fact]) -> Iterator[str]:
    """Yield facts of a user that differ from the project's; the user's count."""
    listed = {(fact.cpu_model, fact.name): fact for fact in read_facts("cpu_models.csv")}
    for fact in facts:
        other = listed.get((fact.cpu_model, fact.name))
        if other and other.number != fact.number:
            yield f"{fact.cpu_model}: {fact.name} is {fact.value}, the table of the project says {other.value}"


def find_unresolved() -> Iterator[str]:
    """Yield the CPU models of the project's table whose name leads to another family, or to none."""
    for key, family in sorted({(fact.cpu_model, fact.family) for fact in read_facts("cpu_models.csv")}):
        if find_family(key) != family:
            yield f"{key}: the name leads to {find_family(key)}, the table says {family}"


def measure_verified_shares() -> dict[str, tuple[int, int]]:
    """Return for every table of the project how many of its facts have a source that was looked at, and all of them."""
    shares = {}
    for table in TABLES:
        facts = read_facts(table)
        shares[table] = (sum(fact.quality > 0 for fact in facts), len(facts))
    return shares


def append_fact_row(path: Path, row: Mapping[str, str]) -> None:
    """Append one CPU model to the table of a user, which begins with the line of the columns.

    Of several processes that add at once, each waits for the others; what the file holds already keeps its bytes.
    Raises: UserError for a line with a problem, or where the file has the CPU model already.
    """
    path = Path(path)
    with _locked_folder(path.resolve().parent):
        _append_row(path, row)


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Hold an flock on a folder: one process at a time reads a file in it and replaces it."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _append_row(path: Path, row: Mapping[str, str]) -> None:
    before = _read_rows(path) if path.is_file() else []
    key = cpu_model_key(row["cpu_model"]) if row.get("cpu_model") else ""
    twice = [number for number, other in before if cpu_model_key(other.get("cpu_model") or "-") == key]
    problems = list(find_row_problems(row, "the new line"))
    if twice:
        problems = [f"line {twice[0]} has {row['cpu_model']!r} already"]
    if problems:
        raise UserError(f"a line of {path} must state facts of a new CPU model", problems[0], "correct it")
    content = path.read_bytes() if path.is_file() else (",".join(COLUMNS) + "\n").encode()
    first_line = content.splitlines(keepends=True)[0].decode("utf-8-sig", "replace")
    header = header_of(first_line, path.name, remedy=_REMEDY)
    left_out = [name for name, value in row.items() if value and name not in header]
    if left_out:
        raise UserError(f"{path} must have a column for every fact", f"it has no {left_out[0]}", "add the column")
    line, end = io.StringIO(), "\r\n" if first_line.endswith("\r\n") else "\n"
    csv.writer(line, lineterminator=end).writerow([row.get(name, "") for name in header])
    with atomic_path(path) as temporary:
        temporary.write_bytes(content + (b"" if content.endswith(b"\n") else end.encode()) + line.getvalue().encode())
