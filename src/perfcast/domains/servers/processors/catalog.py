"""Processor catalog: four public specification tables and the table of the project, joined by CPU model to rows.

The order is ARK, AMD, xeon, boavizta, project; each table fills only the gaps of the earlier ones. The table of the
project (`cpu_models.csv`) holds data-sheet values that the public tables do not list: newer CPU models, and all-core
clocks of others. Facts that no table states stay missing. Column `known_from` is the day from which the facts of a
model were public: its launch. Of a quarter it is the last day, and of a model without a launch the day of its family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.servers.parsing.distinct_texts import encode_texts, expand_codes, is_coded
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.domains.servers.processors.facts import (
    UNITS,
    Fact,
    find_launch,
    look_up_facts,
    read_facts,
    read_table,
)
from perfcast.sources.bounded_files import PLAIN, header_of, records, text_lines, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

_REMEDY = "ingest the source cpu_catalog again"

FACTS = (
    *("tdp_w", "max_turbo_mhz", "all_core_turbo_mhz", "base_mhz", "cores_per_chip", "l2_kb_per_core", "l3_mb_per_chip"),
    *("mem_channels_per_chip", "launch_quarter", "process_node", "upi_links", "fma_units", "pcie_gen", "max_sockets"),
    "list_price_usd",
)
"""Units: W, MHz, KiB, MiB, USD, counts; launch_quarter is the first day of the quarter."""
KNOWN_FROM = "known_from"

_Value = float | str | pd.Timestamp | None
_Reader = Callable[[str], _Value]
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CLOCK = re.compile(r"(\d+(?:\.\d+)?)\s*([GM])Hz", re.IGNORECASE)
_QUARTER = re.compile(r"Q([1-4])'(\d\d)")
_DAY = re.compile(
    r"(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])-\d\d"
    r"|\b(?P<american_month>[1-9]|1[0-2])/\d{1,2}/(?P<american_year>(?:19|20)\d\d)"
)
_THIRD_LEVEL_FROM = 2011
"""Year from which the cache that Intel lists is the third level; it was the second one of many models before."""
_LOWER_BOUNDS = {"tdp_w": 10.0, "base_mhz": 800.0}


def _parse_first(text: str) -> float | None:
    match = _NUMBER.search(text)
    return float(match[0]) if match else None


def _parse_mhz(text: str) -> float | None:
    match = _CLOCK.search(text)
    return float(round(float(match[1]) * (1000 if match[2].upper() == "G" else 1))) if match else None


def _parse_quarter(text: str) -> pd.Timestamp | None:
    match = _QUARTER.search(text)
    return pd.Timestamp(2000 + int(match[2]), 3 * int(match[1]) - 2, 1) if match else None


def _parse_quarter_of_day(text: str) -> pd.Timestamp | None:
    """Return the quarter of a day written 2021-03-15 or 3/15/2021."""
    match = _DAY.search(text)
    if match is None:
        return None
    year, month = int(match["year"] or match["american_year"]), int(match["month"] or match["american_month"])
    return pd.Timestamp(year, 3 * ((month - 1) // 3) + 1, 1)


_READERS: dict[str, _Reader] = {
    "text": lambda text: text or None,
    "first": _parse_first,
    "largest": lambda text: max(map(float, _NUMBER.findall(text)), default=None),
    "clock": _parse_mhz,
    "ghz": lambda text: None if (value := _parse_first(text)) is None else float(round(value * 1000)),
    "quarter": _parse_quarter,
    "day": _parse_quarter_of_day,
    # 'PCIe 4.0 x128' states lanes too; 'x128' alone states no generation.
    "amd_pcie": lambda text: float(match[1]) if (match := re.search(r"PCIe\D*(\d)\.\d", text)) else None,
    # a size in KB, or of the first or second level, is no third level; most sizes name no level
    "third_level": lambda text: None if re.search(r"KB|L[12] Cache", text) else _parse_first(text),
}
"""Name of a reader in `catalog_columns.csv` -> function that reads a cell."""


@dataclass(frozen=True)
class _Layout:
    """One catalog file: the column with the CPU model, and the column of each fact."""

    table: str
    file: str
    name: str
    facts: Mapping[str, tuple[str, _Reader]]


def _read_layouts() -> tuple[_Layout, ...]:
    """Return the layouts of `catalog_columns.csv`; the first row of a table names the column with the CPU model."""
    layouts = []
    for (table, file), group in groupby(read_table("catalog_columns.csv"), key=itemgetter("table", "file")):
        first, *facts = group
        readers = {row["fact"]: (row["column"], _READERS[row["reader"]]) for row in facts}
        layouts.append(_Layout(table, file, first["column"], readers))
    return tuple(layouts)


_LAYOUTS = _read_layouts()
_PROJECT, _PROJECT_FILE = "project", "cpu_models.csv"
TABLES = (*(layout.table for layout in _LAYOUTS), _PROJECT)

_MEMORY_TIER = re.compile(r"(xeon (?:gold|platinum) \d[12]\d\d)m")
_ONE_SOCKET = re.compile(r"(epyc \d{4})p")


_BARE = re.compile(r"(?:[A-Z]|TL-)?\d{2,4}[A-Za-z+]{0,2}(?: [HES]E)?(?: with .*)?")
_BRAND = re.compile(r"Opteron|Phenom(?: II)?(?: X\d)?|Athlon(?: II)?(?: X\d)?|Turion 64 X2|Sempron")


def add_brand(name: str, line: str) -> str:
    """Return the name of a CPU model with its brand, where a list writes '6276' and the brand in its product line."""
    brand = _BRAND.search(line.replace("™", "")) if _BARE.fullmatch(name.strip()) else None
    return f"{brand[0]} {name}" if brand else name


def find_twin_key(key: str) -> str | None:
    """Return the key of the CPU model with the same specification, or None.

    Xeon x1xxM and x2xxM differ from the model without M in memory capacity only (later M models are different ones).
    EPYC ...P differs from the model without P in the number of sockets only.
    """
    match = _MEMORY_TIER.fullmatch(key) or _ONE_SOCKET.fullmatch(key)
    return match[1] if match else None


@dataclass(frozen=True)
class Catalog:
    """Joined catalog.

    Shapes: `facts` has one row per CPU model and the columns FACTS and KNOWN_FROM; `members` holds the keys of each
    table.
    """

    facts: pd.DataFrame
    members: Mapping[str, frozenset[str]]

    def lookup(self, keys: Iterable[str], as_of: pd.Timestamp | None = None) -> pd.DataFrame:
        """Return the facts of each key and the column `table`, the first table that lists the CPU model.

        A model found by its twin (`find_twin_key`) has the table 'twin'; an unknown model has only missing values.
        Facts that were not public before `as_of` are missing.
        """
        wanted = pd.Index(list(keys), name="cpu_model").unique()
        tables = {key: self._find_table(key) for key in wanted}
        twins = {
            key: twin for key in wanted if not tables[key] and (twin := find_twin_key(key)) and self._find_table(twin)
        }
        facts = self.facts.reindex(wanted)
        # facts that the tables leave out come from the twin
        others = self.facts.reindex([find_twin_key(key) or key for key in wanted]).set_axis(wanted, axis=0)
        facts = facts.combine_first(others).reindex(wanted)[list(FACTS)]
        facts.loc[[key for key in twins if _ONE_SOCKET.fullmatch(key)], "max_sockets"] = 1.0
        if as_of is not None:
            known_from = self.facts[KNOWN_FROM].reindex([key if tables[key] else twins.get(key, key) for key in wanted])
            public = np.asarray(known_from < as_of)
            facts = facts.where(pd.DataFrame(dict.fromkeys(facts, public), index=facts.index))
        source = ["twin" if key in twins else tables[key] for key in wanted]
        return facts.assign(table=pd.Series(source, index=wanted, dtype="str"))

    def _find_table(self, key: str) -> str | None:
        return next((table for table in TABLES if key in self.members.get(table, ())), None)


def read_project_catalog() -> Catalog:
    """Return a catalog of the project's table alone, for use without the source."""
    return _merge_tables({})


def read_catalog(folder: Path) -> Catalog:
    """Return the catalog of a folder. Absent files are skipped.

    Files that have not changed are read once by a process: every backtest of described machines asks for them.

    Raises:
        UserError: The folder has no catalog file, or a file lacks a column.
    """
    paths = [Path(folder) / layout.file for layout in _LAYOUTS]
    stamps = tuple((stat.st_mtime_ns, stat.st_size) for stat in (path.stat() for path in paths if path.is_file()))
    return _read_unchanged(Path(folder), stamps)


@lru_cache(maxsize=2)
def _read_unchanged(folder: Path, stamps: tuple[tuple[int, int], ...]) -> Catalog:
    present = [layout for layout in _LAYOUTS if (folder / layout.file).is_file()]
    tables = {layout.table: _read_rows(folder / layout.file, layout) for layout in present}
    if not tables:
        raise UserError(
            f"the processor catalog must have one of {', '.join(layout.file for layout in _LAYOUTS)}",
            f"{folder} has none",
            _REMEDY,
        )
    return _merge_tables(tables)


def _merge_tables(tables: Mapping[str, Mapping[str, dict[str, _Value]]]) -> Catalog:
    merged: dict[str, dict[str, _Value]] = {}
    everything = {**tables, _PROJECT: _read_project_rows()}
    for rows in everything.values():
        for key, facts in rows.items():
            known = merged.setdefault(key, dict.fromkeys(FACTS))
            known.update({fact: value for fact, value in facts.items() if known[fact] is None})
    frame = pd.DataFrame.from_dict(merged, orient="index", columns=list(FACTS)).rename_axis("cpu_model")
    members = {table: frozenset(rows) for table, rows in everything.items()}
    frame = frame.astype({**dict.fromkeys(FACTS, "float64"), "launch_quarter": "datetime64[us]", "process_node": "str"})
    return Catalog(frame.assign(**{KNOWN_FROM: _date_facts(frame["launch_quarter"])}), members)


def _date_facts(launches: pd.Series) -> pd.Series:
    """Return the day from which the facts of every CPU model were public."""
    launched = {fact.cpu_model: fact.known_from for fact in read_facts(_PROJECT_FILE)}
    listed = pd.Series({key: launched.get(key) for key in launches.index}, dtype="datetime64[us]")
    families = pd.Series({key: find_launch(find_family(key) or "") for key in launches.index}, dtype="datetime64[us]")
    quarter_end = launches + pd.offsets.QuarterEnd(0)
    return listed.fillna(quarter_end).fillna(families).astype("datetime64[us]")


def _read_project_rows() -> dict[str, dict[str, _Value]]:
    rows: dict[str, dict[str, _Value]] = {}
    for fact in read_facts(_PROJECT_FILE):
        known = rows.setdefault(fact.cpu_model, {})
        if fact.name in FACTS:
            known[fact.name] = fact.number
        if fact.known_from is not None:
            known["launch_quarter"] = fact.known_from.to_period("Q").start_time
    return rows


def _read_rows(path: Path, layout: _Layout) -> dict[str, dict[str, _Value]]:
    """Return the facts by CPU model; the first of repeated rows counts."""
    with unpacked(path, PLAIN, most=size_limits.TABLE, remedy=_REMEDY) as file:
        lines = text_lines(file, path.name, remedy=_REMEDY)
        header = header_of(next(lines, ""), path.name, remedy=_REMEDY)
        missing = [
            name for name in (layout.name, *(column for column, _ in layout.facts.values())) if name not in header
        ]
        if missing:
            raise UserError(
                f"{path.name} must have the column {missing[0]!r}",
                f"its {len(header)} columns do not include it",
                _REMEDY,
            )
        rows: dict[str, dict[str, _Value]] = {}
        for _, fields in records(lines, path.name, remedy=_REMEDY):
            if [field.strip() for field in fields] == header:
                raise UserError(f"{path.name} must have one header", "the header is repeated", _REMEDY)
            row = dict(zip_longest(header, fields[: len(header)]))
            name = add_brand(row[layout.name] or "", row.get("Line") or "")
            if name.strip() and row.get("model_range") != "Chipsets":
                rows.setdefault(cpu_model_key(name), _parse_facts(row, layout))
        if not rows:
            raise UserError(f"{path.name} must have rows", "it lists no CPU model", _REMEDY)
    return rows


def _parse_facts(row: Mapping[str, str | None], layout: _Layout) -> dict[str, _Value]:
    facts = {fact: read((row[column] or "").strip()) for fact, (column, read) in layout.facts.items()}
    for fact, low in _LOWER_BOUNDS.items():
        value = facts.get(fact)
        if isinstance(value, float) and value < low:
            facts[fact] = None
    tdp = facts.get("tdp_w")
    if isinstance(tdp, float) and not tdp.is_integer() and layout.table == "xeon":
        # The Xeon list has a cache size (30.165) in one power cell; real ratings there are whole numbers.
        facts["tdp_w"] = None
    launch = facts.get("launch_quarter")
    recent = isinstance(launch, pd.Timestamp) and launch.year >= _THIRD_LEVEL_FROM
    if layout.table == "ark" and "L3" not in (row["Cache"] or "") and not recent:
        facts["l3_mb_per_chip"] = None
    if layout.table == "ark" and facts["max_turbo_mhz"] is None:
        # ARK leaves the turbo clock empty for CPU models without turbo, which run at their base clock.
        facts["max_turbo_mhz"] = facts["base_mhz"]
    return facts


CATALOG = "cpu_catalog"
_FROM_CATALOG = ("tdp_w", "max_turbo_mhz", "all_core_turbo_mhz", "launch_quarter", "upi_links", "max_sockets")
_CATALOG_FIRST = ("fma_units", "pcie_gen", "process_node")
_FROM_FAMILY = {
    **{name: name for name in ("cpu_vendor", "family", "series", "tier", "suffix", "isa", "simd_bits")},
    "has_amx": "amx",
    "mem_max_mts_1dpc": "max_mts_1dpc",
    "mem_max_mts_2dpc": "max_mts_2dpc",
    "mem_mrdimm_mts": "mrdimm_mts",
    **{f"family_{name}": name for name in ("ddr_gen", "l1i_kb", "l1d_kb", "l2_kb_per_core")},
}
COLUMNS_OF_FACTS = {
    **{fact: column for column, fact in _FROM_FAMILY.items()},
    **{name: name for name in (*_FROM_CATALOG, *_CATALOG_FIRST, "base_mhz", "l3_mb_per_chip")},
    **{name: name for name in ("l1i_kb", "l1d_kb", "l2_kb_per_core")},
    "cores_per_chip": "cores_per_chip_of_cpu_model",
    "channels_per_chip": "mem_channels_per_chip",
    "ddr_gen": "ddr_gen",
}
"""Standard column of every fact."""


def join_catalog(frame: pd.DataFrame, raw: Mapping[str, Path]) -> pd.DataFrame:
    """Add the facts of each row's CPU model, with the catalog where its source is available."""
    return join_processors(frame, read_catalog(raw[CATALOG]) if CATALOG in raw else read_project_catalog())


def join_processors(frame: pd.DataFrame, catalog: Catalog, as_of: pd.Timestamp | None = None) -> pd.DataFrame:
    """Add the facts of each row's CPU model from the family tables and the catalog; unknown facts are missing.

    Only facts that were public before `as_of` count, all of them without a day.
    """
    keys = frame["cpu_model"].drop_duplicates().astype("str")
    families = pd.DataFrame([look_up_facts(key, as_of) for key in keys], index=pd.Index(keys, name="cpu_model"))
    listed = catalog.lookup(keys, as_of)
    facts = {name: families[fact] for name, fact in _FROM_FAMILY.items()}
    facts |= {name: listed[name] for name in _FROM_CATALOG}
    facts |= {name: _fill_missing(listed[name], families[name]) for name in _CATALOG_FIRST}
    # The family table lists the channels of more CPU models than the catalog; the two agree wherever both do.
    facts["mem_channels_per_chip"] = _fill_missing(families["channels_per_chip"], listed["mem_channels_per_chip"])
    facts |= {"catalog_cores": listed["cores_per_chip"], "catalog_table": listed["table"]}
    if is_coded(frame["cpu_model"]):
        codes, names = encode_texts(frame["cpu_model"])
        joined = frame.assign(
            **{name: expand_codes(values.loc[names].tolist(), codes, frame.index) for name, values in facts.items()}
        )
    else:
        joined = frame.join(pd.DataFrame(facts), on="cpu_model")
    return joined.assign(cores_per_chip_stated=joined["cores"] / joined["chips"])


def _fill_missing(first: pd.Series, second: pd.Series) -> pd.Series:
    return first.astype(object).where(first.notna(), second).infer_objects()


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
    key = cpu_model_key(name)
    row: dict[str, Any] = dict(read_catalog(folder).lookup([key]).iloc[0]) if folder.is_dir() else {}
    yield from list_joined_facts(name, find_family(key) or "", row, {fact: fact for fact in FACTS})


def list_joined_facts(name: str, family: str, row: Mapping[str, Any], columns: Mapping[str, str]) -> Iterator[Fact]:
    """Yield the facts that a row of CPU facts has of the public catalogs, with the day of `Catalog.known_from`.

    Catalogs date no fact. Theirs are public from the last day of the launch quarter, or from the day of the family.
    Args: `columns` is the column of every fact.
    """
    launch, day, source = row.get("launch_quarter"), find_launch(family), "public catalogs; day of the family's launch"
    if pd.notna(launch):
        day, source = launch + pd.offsets.QuarterEnd(0), f"public catalogs; launch in {launch.year} Q{launch.quarter}"
    of_family = {fact.name for fact in read_facts("families.csv") if fact.family == family}
    for fact, column in columns.items():
        if fact in UNITS and fact not in of_family and pd.notna(row.get(column)):
            yield Fact(cpu_model_key(name), "", fact, _write(row[column]), UNITS[fact], day, source, 1)


def _write(value: Any) -> str:
    return f"{value:%Y-%m-%d}" if isinstance(value, pd.Timestamp) else f"{value}".removesuffix(".0")
