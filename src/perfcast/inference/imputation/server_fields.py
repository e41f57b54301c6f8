"""Short fields of servers: processor, memory, operating system, compiler, storage."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfcast.data.parsing.compiler import parse_compiler
from perfcast.data.parsing.memory import parse_memory
from perfcast.data.parsing.operating_system import parse_operating_system
from perfcast.data.parsing.storage import parse_storage
from perfcast.inference.machine_fields import Cell, Field, alias_field

_MODULES = re.compile(
    r"(?:(?P<count>\d{1,5})\s*x\s*)?(?P<size>\d{1,5}(?:\.\d+)?)\s*(?P<unit>[GT]i?B)\s*"
    r"(?:(?P<ranks>\d{1,2})Rx(?P<width>\d{1,2})\s*)?"
    r"(?:DDR(?P<generation>\d)(?:[ -]?(?P<rate>\d{3,5})(?:\s*MT/s)?)?)?\s*"
    r"(?P<kind>RDIMM|LRDIMM|UDIMM|SODIMM|MRDIMM|MCRDIMM)?",
    re.IGNORECASE,
)
_KINDS = {"RDIMM": "R", "LRDIMM": "L", "UDIMM": "U", "SODIMM": "S", "MRDIMM": "M", "MCRDIMM": "M"}
_MEMORY = (
    *("mem_total_gb", "hbm_gb", "dimm_count", "dimm_gb", "dimm_groups", "dimm_ranks", "dimm_width"),
    *("dimm_type", "ecc", "ddr_gen", "mem_rated_mts", "mem_running_mts"),
)
_SYSTEM = ("os_name", "os_version", "kernel_series", "arch")
_COMPILER = ("compiler_vendor", "compiler_major_minor", "compiler_classic", "oneapi", "mixed_fortran")
_NAMED_VERSION = re.compile(r"(?P<vendor>[A-Za-z][\w /+-]*?)\s+v?(?P<version>\d{1,4}(?:\.\d{1,4}){0,3})")


def _read_memory(text: str) -> Mapping[str, Cell]:
    match = _MODULES.fullmatch(text.strip())
    if match:
        return _read_modules(match)
    parsed = parse_memory(text)
    if not parsed.complete:
        raise ValueError("the number, size and kind of modules are not all there")
    return _stated(parsed, "complete", "groups", "mem_sum_gb", "mem_eff_mts")


def _read_modules(match: re.Match[str]) -> Mapping[str, Cell]:
    size = float(match["size"]) * (1024 if match["unit"][0] in "Tt" else 1)
    kind = match["kind"] and _KINDS[match["kind"].upper()]
    if match["count"] is None:
        cells: dict[str, Cell | None] = {"mem_total_gb": size}
    else:
        count = float(match["count"])
        cells = {"dimm_count": count, "dimm_gb": size, "mem_total_gb": count * size, "dimm_groups": 1.0, "hbm_gb": 0.0}
    cells |= {
        "dimm_ranks": _number(match["ranks"]),
        "dimm_width": _number(match["width"]),
        "ddr_gen": _number(match["generation"]),
        "mem_rated_mts": _number(match["rate"]),
        "dimm_type": kind,
    }
    return {name: cell for name, cell in cells.items() if cell is not None}


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def _stated(parsed: object, *but: str) -> dict[str, Cell]:
    """Return the known attributes of a parsed text by column; truth values are 1 and 0."""
    stated = {name: value for name, value in vars(parsed).items() if value is not None and name not in but}
    return {name: value if isinstance(value, str) else float(value) for name, value in stated.items()}


def _read_operating_system(text: str) -> Mapping[str, Cell]:
    parsed = parse_operating_system(text)
    if parsed.os_name is None:
        raise ValueError("no operating system is known by that name")
    return _stated(parsed, "complete", "kernel")


def _read_compiler(text: str) -> Mapping[str, Cell]:
    parsed = parse_compiler(text)
    named = _NAMED_VERSION.fullmatch(text.strip())
    if parsed.compiler_vendor is None and named:
        parsed = parse_compiler(f"C/C++: Version {named['version']} of {named['vendor']}")
    if parsed.compiler_vendor is None:
        raise ValueError("no compiler with a version is known by that name")
    return _stated(parsed, "complete", "parts", "compiler_order")


def _read_storage(text: str) -> Mapping[str, Cell]:
    parsed = parse_storage(text)
    if not parsed.complete:
        raise ValueError("the kind and size of the devices are not both there")
    return _stated(parsed, "complete")


SERVER_FIELDS = (
    alias_field("processor", "cpu_model", "the processor's name", "AMD EPYC 9654", "cpu"),
    alias_field("cores", "cores_per_chip_stated", "enabled cores of each processor", "96", "cores_per_chip"),
    alias_field("sockets", "chips", "processors", "2"),
    Field("memory", "modules of memory", "24 x 64 GB DDR5-4800", _MEMORY, _read_memory),
    alias_field("memory.channels", "mem_channels_per_chip", "memory channels of each processor", "12", "channels"),
    alias_field("memory.total", "mem_total_gb", "memory capacity", "1536 GB"),
    alias_field("memory.rate", "mem_rated_mts", "rate the modules are rated for", "4800 MT/s"),
    alias_field("clock", "base_mhz", "nominal clock", "2.4 GHz"),
    alias_field("turbo", "max_turbo_mhz", "highest clock of one core", "3.7 GHz"),
    alias_field("tdp", "tdp_w", "thermal design power of each processor", "360 W"),
    alias_field("l3", "l3_mb_per_chip", "third-level cache of each processor", "384 MB"),
    Field(
        "os", "an operating system", "SLES 15 SP4, kernel 5.14", _SYSTEM, _read_operating_system, ("operating_system",)
    ),
    Field("compiler", "a compiler with its version", "AOCC 4.0", _COMPILER, _read_compiler),
    Field("storage", "storage devices", "1 x 960 GB NVMe SSD", ("storage_class", "storage_gb"), _read_storage),
)
