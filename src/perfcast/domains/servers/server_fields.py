"""Short fields of servers: processor, memory, operating system, compiler, storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfcast.domains import read_table
from perfcast.domains.servers.parsing.memory import Memory, parse_described_memory
from perfcast.domains.servers.parsing.names import normalize_company
from perfcast.domains.servers.parsing.software import (
    parse_described_compiler,
    parse_described_operating_system,
    parse_described_storage,
)
from perfcast.domains.servers.parsing.text_normalization import is_stated
from perfcast.inference.machine_fields import Cell, Field, Reading, alias_field, counted_field

_MEMORY = (
    "mem_total_gb",
    "hbm_gb",
    "dimm_count",
    "dimm_gb",
    "dimm_groups",
    "dimm_ranks",
    "dimm_width",
    "dimm_type",
    "ecc",
    "ddr_gen",
    "mem_rated_mts",
    "mem_running_mts",
)
_SYSTEM = ("os_name", "os_version", "kernel_series", "arch")
_COMPILER = ("compiler_vendor", "compiler_major_minor", "compiler_classic", "oneapi", "mixed_fortran")
_STORAGE = ("storage_class", "storage_gb")
_SHOWN_CELLS = 4


def _parse_typed_memory(text: str) -> Memory:
    """Return memory as people type it. Raises: ValueError for a text that states something else than sizes."""
    parsed = parse_described_memory(text)
    sized = parsed.mem_total_gb or parsed.dimm_gb or parsed.dimm_count
    if is_stated(text) and not parsed.complete and not sized:
        raise ValueError("no size was found in it")
    return parsed


def _text_field(
    name: str,
    meaning: str,
    example: str,
    columns: tuple[str, ...],
    parse: Callable[[str], Any],
    *aliases: str,
) -> Field:
    """Return a field whose text a parser reads; truth values are 1 and 0."""

    def read(text: str) -> Reading:
        parsed = parse(text)
        cells: dict[str, Cell] = {}
        for column in columns:
            value = getattr(parsed, column)
            if value is not None:
                cells[column] = value if isinstance(value, str) else float(value)
        return Reading(cells, "" if parsed.complete else f"was read in part, as {_show(cells)}; the rest was ignored")

    return Field(name, meaning, example, columns, read, aliases)


def _show(cells: Mapping[str, Cell]) -> str:
    """Return the first cells as text."""
    shown = [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in cells.items()]
    return ", ".join(shown[:_SHOWN_CELLS]) + (" and more" if len(shown) > _SHOWN_CELLS else "")


def _read_smt(text: str) -> Reading:
    """Return the threads of a core with or without SMT. Raises: ValueError for another text."""
    return Reading({"threads_per_core": 1.0 + ("off", "on").index(text.strip().lower())})


def _read_company(text: str) -> Reading:
    """Return the vendor of a machine under the name that its results have."""
    return Reading({"hw_vendor": normalize_company(text) or text})


SERVER_FIELDS = (
    counted_field(
        alias_field("processor", "cpu_model", "the processor's name", "AMD EPYC 9654", "cpu", "cpu_model"), "chips"
    ),
    alias_field("cores", "cores_per_chip_stated", "enabled cores of each processor", "96", "cores_per_chip"),
    Field("smt", "on or off: several threads of each core", "off", ("threads_per_core",), _read_smt),
    alias_field("sockets", "chips", "processors", "2"),
    _text_field("memory", "size and modules of memory", "24 x 64 GB DDR5-4800", _MEMORY, _parse_typed_memory),
    alias_field("memory.channels", "mem_channels_per_chip", "memory channels of each processor", "12", "channels"),
    alias_field("memory.total", "mem_total_gb", "memory capacity", "1536 GB"),
    alias_field("memory.rate", "mem_rated_mts", "rate the modules are rated for", "4800 MT/s"),
    alias_field("clock", "base_mhz", "nominal clock", "2.4 GHz"),
    alias_field("turbo", "max_turbo_mhz", "highest clock of one core", "3.7 GHz"),
    alias_field("tdp", "tdp_w", "thermal design power of each processor", "360 W"),
    alias_field("l3", "l3_mb_per_chip", "third-level cache of each processor", "384 MB"),
    _text_field(
        "os",
        "name and version of an operating system",
        "SLES 15 SP4, kernel 5.14",
        _SYSTEM,
        parse_described_operating_system,
        "operating_system",
    ),
    _text_field("compiler", "name and version of a compiler", "AOCC 4.0", _COMPILER, parse_described_compiler),
    Field("vendor", "vendor of the machine", "Dell Inc.", ("hw_vendor",), _read_company, ("hw_vendor",)),
    _text_field("storage", "kind and size of devices", "1 x 960 GB NVMe SSD", _STORAGE, parse_described_storage),
)


def read_column_rule(rule: str) -> dict[str, tuple[str, ...]]:
    """Return the values of every column of a rule in `column_rules.csv`, in the order of the rows."""
    rows = read_table(__package__, "column_rules.csv")
    return {row["column"]: tuple(row["value"].split()) for row in rows if row["rule"] == rule}
