"""Short fields of servers: processor, memory, operating system, compiler, storage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.data.parsing.compiler import parse_compiler
from perfcast.data.parsing.memory import parse_memory
from perfcast.data.parsing.operating_system import parse_operating_system
from perfcast.data.parsing.storage import parse_storage
from perfcast.inference.imputation.rules import Violation
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

_DDR_RATES = {2: (400, 1066), 3: (800, 2133), 4: (1600, 3600), 5: (3200, 12800)}
"""Lowest and highest rate that modules of a DDR generation are sold for. Units: MT/s."""
_DIMMS_PER_CHANNEL = 2
_NODE_SOCKETS = 8
"""Sockets from which node controllers join a CPU model to more of them than it links itself."""
_CAPACITY_TOLERANCE = 0.02


@dataclass(frozen=True)
class _Limit:
    """One limit. A missing cell breaks nothing.

    `named`: columns of the wrong value, the usual one first. `fact`: text of a row that breaks the limit.
    """

    named: tuple[str, ...]
    is_broken: Callable[[pd.DataFrame], pd.Series]
    fact: Callable[[pd.Series], str]
    remedy: str


def _has_rate_of_other_generation(frame: pd.DataFrame) -> pd.Series:
    low, high = (frame["ddr_gen"].map({key: pair[end] for key, pair in _DDR_RATES.items()}) for end in (0, 1))
    return (frame["mem_rated_mts"] < low) | (frame["mem_rated_mts"] > high)


def _has_other_capacity(frame: pd.DataFrame) -> pd.Series:
    modules = frame["dimm_count"] * frame["dimm_gb"] + frame["hbm_gb"].fillna(0)
    differs = (frame["mem_total_gb"] - modules).abs() > _CAPACITY_TOLERANCE * frame["mem_total_gb"]
    return differs & (frame["dimm_groups"].fillna(1) == 1)


_INSTALLED = ("dimm_count", "mem_total_gb")
_LIMITS = (
    _Limit(
        ("cores_per_chip_stated", "cores_enabled_total", "cores_per_chip_part", "chips"),
        lambda f: f["cores_enabled_total"] > f["chips"] * f["cores_per_chip_part"],
        lambda r: f"{r.cores_enabled_total / r.chips:g} per chip is more than the {r.cores_per_chip_part:g} of {{cpu}}",
        "correct it, or name another processor",
    ),
    _Limit(
        ("cores_enabled_total", "cores_per_chip_stated", "chips"),
        lambda f: f["cores_enabled_total"] % f["chips"] > 0,
        lambda r: f"{r.cores_enabled_total:g} in total cannot be shared equally by {r.chips:g} chips",
        "correct it, or the number of chips",
    ),
    _Limit(
        ("chips",),
        lambda f: (f["chips"] > f["max_sockets"]) & (f["max_sockets"] < _NODE_SOCKETS),
        lambda r: f"{r.chips:g} is more than the {r.max_sockets:g} sockets that {{cpu}} supports",
        "correct it, or name another processor",
    ),
    _Limit(
        ("base_mhz", "max_turbo_mhz"),
        lambda f: f["base_mhz"] > f["max_turbo_mhz"],
        lambda r: f"the nominal {r.base_mhz:g} MHz is above the turbo clock of {r.max_turbo_mhz:g} MHz",
        "correct it, or the other clock",
    ),
    _Limit(
        (*_INSTALLED, "chips"),
        lambda f: (f["dimm_count"] > 0) & (f["dimm_count"] % f["chips"] > 0),
        lambda r: f"{r.dimm_count:g} modules cannot be shared equally by {r.chips:g} chips",
        "give every processor the same number of modules",
    ),
    _Limit(
        (*_INSTALLED, "mem_channels_per_chip", "chips"),
        lambda f: f["dimm_count"] > _DIMMS_PER_CHANNEL * f["chips"] * f["mem_channels_per_chip"],
        lambda r: (
            f"{r.dimm_count:g} modules are more than {_DIMMS_PER_CHANNEL} in each of the "
            f"{r.chips * r.mem_channels_per_chip:g} memory channels"
        ),
        "correct it, or set a different memory.channels",
    ),
    _Limit(
        ("mem_total_gb", "dimm_count", "dimm_gb"),
        _has_other_capacity,
        lambda r: f"{r.mem_total_gb:g} GiB in total is not {r.dimm_count:g} modules of {r.dimm_gb:g} GiB",
        "correct one of them, or leave out the total",
    ),
    _Limit(
        ("mem_rated_mts", "ddr_gen"),
        _has_rate_of_other_generation,
        lambda r: (
            f"{r.mem_rated_mts:g} MT/s is no rate of DDR{r.ddr_gen:g}, which has "
            f"{_DDR_RATES[int(r.ddr_gen)][0]} to {_DDR_RATES[int(r.ddr_gen)][1]} MT/s"
        ),
        "correct it, or the DDR generation",
    ),
    _Limit(
        ("mem_running_mts", "mem_rated_mts"),
        lambda f: f["mem_running_mts"] > f["mem_rated_mts"],
        lambda r: f"the running {r.mem_running_mts:g} MT/s is above the rated {r.mem_rated_mts:g} MT/s",
        "correct it, or the other rate",
    ),
)


def find_server_violations(frame: pd.DataFrame) -> Iterator[Violation]:
    """Yield every limit that a row breaks, limit by limit."""
    lines = frame.index.to_numpy()
    for limit in _LIMITS:
        broken = limit.is_broken(frame).fillna(False).to_numpy(dtype=bool)
        for position in np.flatnonzero(broken):
            yield Violation(int(lines[position]), limit.named, limit.fact(frame.iloc[position]), limit.remedy)
