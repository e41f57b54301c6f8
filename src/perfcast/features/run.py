"""Derived characteristics of a benchmark run: aggregate clocks, caches and memory bandwidth."""

from __future__ import annotations

from perfcast.features.feature_math import append, declared, feature, logs, ratio, require
from perfcast.schema.table import Table, Tag

REQUIRES: tuple[str, ...] = (
    "chips",
    "cores_enabled_total",
    "numa_nodes",
    "base_mhz",
    "all_core_turbo_mhz",
    "sku_avx512_all_core_mhz",
    "l2_kb_per_core",
    "l3_mb_per_chip",
    "mem_total_gb",
    "mem_channels_filled",
    "mem_running_mts",
    "hbm_count",
    "hbm_mts",
)
DDR_BYTES = 8
"""Data bytes per transfer of one memory channel."""

HBM_BYTES = 128
"""Data bytes per transfer of one stack: 1024 data lines (JEDEC JESD235)."""

_LOGS = (
    "cores_enabled_total",
    "base_mhz",
    "clock_all_core_total_ghz",
    "clock_avx512_total_ghz",
    "l2_mb_total",
    "l3_mb_total",
    "mem_total_gb",
    "mem_gbps_total",
    "mem_gbps_per_core",
    "mem_gb_per_core",
)


def derive(table: Table) -> Table:
    """Append the derived features of a run. Raises ValueError when a column of `REQUIRES` is missing."""
    frame = require(table, REQUIRES)
    cores = frame["cores_enabled_total"]
    # A run without modules or without stacks has no bandwidth of that kind; an unknown rate stays unknown.
    ddr = (frame["mem_channels_filled"] * frame["mem_running_mts"] * DDR_BYTES / 1000).mask(
        frame["mem_channels_filled"] == 0, 0.0
    )
    hbm = (frame["hbm_count"] * frame["hbm_mts"] * HBM_BYTES / 1000).mask(frame["hbm_count"] == 0, 0.0)
    derived = [
        (
            feature(
                "clock_all_core_total_ghz", "processor", "GHz", "cores x all-core turbo clock", tags=(Tag.SCALING,)
            ),
            cores * frame["all_core_turbo_mhz"] / 1000,
        ),
        (
            feature("clock_avx512_total_ghz", "processor", "GHz", "cores x all-core clock under AVX-512"),
            cores * frame["sku_avx512_all_core_mhz"] / 1000,
        ),
        (
            feature("l2_mb_total", "processor", "MB", "second-level caches of all cores"),
            cores * frame["l2_kb_per_core"] / 1024,
        ),
        (
            feature("l3_mb_total", "processor", "MB", "last-level caches of all processors"),
            frame["chips"] * frame["l3_mb_per_chip"],
        ),
        (
            feature("l3_mb_per_core", "processor", "MB", "last-level cache / cores"),
            ratio(frame["chips"] * frame["l3_mb_per_chip"], cores),
        ),
        (feature("ddr_gbps_total", "memory", "GB/s", "channels filled x running rate x 8 bytes"), ddr),
        (feature("hbm_gbps_total", "memory", "GB/s", "stacks x rate x 128 bytes"), hbm),
        (
            feature("mem_gbps_total", "memory", "GB/s", "peak memory bandwidth, DDR and HBM", tags=(Tag.SCALING,)),
            ddr + hbm,
        ),
        (feature("mem_gbps_per_core", "memory", "GB/s", "peak memory bandwidth / cores"), ratio(ddr + hbm, cores)),
        (feature("mem_gb_per_core", "memory", "GB", "memory / cores"), ratio(frame["mem_total_gb"], cores)),
        (feature("cores_per_numa_node", "system", "", "cores / NUMA nodes"), ratio(cores, frame["numa_nodes"])),
    ]
    extended = append(table, derived)
    return append(extended, logs(declared(extended, _LOGS)))
