"""Standard columns of spec_cpu2006: those of spec_cpu2017 that its dump fills, with bounds of its years."""

from __future__ import annotations

from dataclasses import replace

from perfcast.datasets._spec_cpu2017_columns import COLUMNS as COLUMNS_2017
from perfcast.schema import Column, Kind, Role, Tag

_OMITTED = frozenset(
    {
        *("compiler_classic", "oneapi", "mixed_fortran", "has_amx", "upi_links", "storage_class", "storage_gb"),
        *("energy_base", "arrival_day", "xalanc_notice"),
    }
)
"""Columns that the dump lacks, or that are equal on every row."""

_BOUNDS: dict[str, tuple[float, float]] = {
    "base_mhz": (200, 6000),
    "max_turbo_mhz": (200, 6500),
    "tdp_w": (1, 1000),
    "l4_mb": (0, 1e7),
    "mem_max_mts_1dpc": (200, 12800),
    "mem_total_gb": (0.125, 131072),
    "dimm_gb": (0.125, 2048),
    "dimm_count": (0, 16384),
    "ddr_gen": (1, 6),
    "mem_rated_mts": (200, 12800),
    "mem_running_mts": (200, 12800),
    "mem_eff_mts": (200, 12800),
    "chips": (1, 4096),
    "cores_enabled_total": (1, 65536),
    "orderable_min": (1, 4096),
    "orderable_max": (1, 4096),
}
"""Bounds that differ from spec_cpu2017: DDR and DDR2, processors of a few watts, machines of many processors."""

_MEANINGS = {
    "result_id": "identifier of the result: its line, as the dump has no identifiers",
    "suite": "CINT or CFP, rate or speed; the dump's CINT2006 is CINT2006speed",
    "max_turbo_mhz": "highest clock of a core as stated, else of the catalog; the base clock where turbo is off",
    "isa": "instruction set architecture: x86, ia64, power, sparc",
    "dimm_type": "R registered, F fully buffered, L load-reduced, E or U unbuffered, S small",
    "line": "line of the file",
}

_ADDED = {
    "base_ptr": Column(
        "mixed_compilers",
        Kind.NUMERICAL,
        Role.FEATURE,
        "workload",
        "",
        "1 where the text names compilers of several vendors",
        0,
        1,
        (Tag.CONFIG,),
    ),
    "process_node": Column(
        "bus_mts",
        Kind.NUMERICAL,
        Role.FEATURE,
        "processor",
        "MT/s",
        "rate of the front-side bus as stated; missing without a bus",
        100,
        4000,
        (Tag.CONFIG,),
    ),
}
"""Name of a column -> the additional column that follows it."""


def _derive_columns() -> tuple[Column, ...]:
    columns: list[Column] = []
    for column in COLUMNS_2017:
        if column.name in _OMITTED:
            continue
        low, high = _BOUNDS.get(column.name, (column.low, column.high))
        columns.append(replace(column, low=low, high=high, meaning=_MEANINGS.get(column.name, column.meaning)))
        columns += [_ADDED[column.name]] if column.name in _ADDED else []
    return tuple(columns)


COLUMNS: tuple[Column, ...] = _derive_columns()
"""Standard columns in table order."""
