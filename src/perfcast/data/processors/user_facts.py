"""The table of facts of a user: one CSV line per CPU model, checked like the tables of the project."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from perfcast.data.bounded_files import PLAIN, header_of, records, text_lines, unpacked
from perfcast.data.processors.cpu_names import cpu_model_key, find_family
from perfcast.data.processors.facts import LIMITS, PROVENANCE, QUALITIES, UNITS, Fact, parse_facts, read_facts
from perfcast.data.processors.families import family_table
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
_REMEDY = "see `perfcast facts check`"


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
        return [
            (number, dict(zip(header, [field.strip() for field in fields], strict=False)))
            for number, fields in records(lines, Path(path).name, remedy=remedy)
            if any(field.strip() for field in fields)
        ]


def find_row_problems(row: Mapping[str, str], place: str) -> Iterator[str]:
    """Yield what is wrong with one line: an unknown fact, family or quality, a value that is none, a missing day."""
    if not row.get("cpu_model"):
        yield f"{place}: cpu_model is missing"
        return
    try:
        pd.Timestamp(row.get("known_from") or "none")
    except ValueError:
        yield f"{place}: known_from must be a day, YYYY-MM-DD, but it is {row.get('known_from', '')!r}"
    if not row.get("source"):
        yield f"{place}: source is missing"
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


def find_value_problem(name: str, value: str) -> str | None:
    """Return what is wrong with the value of a numerical fact, None for a plausible one."""
    low, high = LIMITS.get(name, (-math.inf, math.inf))
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if low <= number <= high:
        return None
    return f"{name} must be a number from {low:g} to {high:g} {UNITS[name]}".rstrip() + f", but it is {value!r}"


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

    Raises: UserError for a line with a problem, or where the file has the CPU model already.
    """
    path = Path(path)
    before = _read_rows(path) if path.is_file() else []
    key = cpu_model_key(row["cpu_model"]) if row.get("cpu_model") else ""
    twice = [number for number, other in before if cpu_model_key(other.get("cpu_model") or "-") == key]
    problems = list(find_row_problems(row, "the new line"))
    if twice:
        problems = [f"line {twice[0]} has {row['cpu_model']!r} already"]
    if problems:
        raise UserError(f"a line of {path} must state facts of a new CPU model", problems[0], "correct it")
    text = path.read_text(encoding="utf-8") if path.is_file() else ",".join(COLUMNS) + "\n"
    header = next(csv.reader([text.splitlines()[0].removeprefix("\ufeff")]))
    left_out = [name for name, value in row.items() if value and name not in header]
    if left_out:
        raise UserError(f"{path} must have a column for every fact", f"it has no {left_out[0]}", "add the column")
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([row.get(name, "") for name in header])
    with atomic_path(path) as temporary:
        temporary.write_text(text + ("" if text.endswith("\n") else "\n") + line.getvalue(), encoding="utf-8")
