"""Derived characteristics of a benchmark run: aggregate clocks, caches and memory bandwidth."""

from __future__ import annotations

import numpy as np

from perfcast.domains import read_columns
from perfcast.features.feature_math import append, arrays, ratio
from perfcast.schema.table import Table

REQUIRES = (
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
_COLUMNS = read_columns(__package__, "columns.csv", "run")


def derive(table: Table) -> Table:
    """Append the derived features of a run. Raises ValueError when a column of `REQUIRES` is missing."""
    frame = arrays(table, REQUIRES)
    cores = frame["cores_enabled_total"]
    channels = frame["mem_channels_filled"]
    stacks = frame["hbm_count"]
    # A run without modules or without stacks has no bandwidth of that kind; an unknown rate stays unknown.
    ddr = np.where(channels == 0, 0.0, channels * frame["mem_running_mts"] * DDR_BYTES / 1000)
    hbm = np.where(stacks == 0, 0.0, stacks * frame["hbm_mts"] * HBM_BYTES / 1000)
    l3 = frame["chips"] * frame["l3_mb_per_chip"]
    values = {
        "clock_all_core_total_ghz": cores * frame["all_core_turbo_mhz"] / 1000,
        "clock_avx512_total_ghz": cores * frame["sku_avx512_all_core_mhz"] / 1000,
        "l2_mb_total": cores * frame["l2_kb_per_core"] / 1024,
        "l3_mb_total": l3,
        "l3_mb_per_core": ratio(l3, cores),
        "ddr_gbps_total": ddr,
        "hbm_gbps_total": hbm,
        "mem_gbps_total": ddr + hbm,
        "mem_gbps_per_core": ratio(ddr + hbm, cores),
        "mem_gb_per_core": ratio(frame["mem_total_gb"], cores),
        "cores_per_numa_node": ratio(cores, frame["numa_nodes"]),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)
