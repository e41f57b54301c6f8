"""Features of the whole machine: cores, threads, caches, aggregate clock, ages."""

from __future__ import annotations

from perfcast.features.feature_math import append, decimal_year, declared, feature, logs, ratio, require, version_number
from perfcast.features.server_physics import flops_per_cycle, power_clock_mhz
from perfcast.schema.table import Table, Tag

REQUIRES: tuple[str, ...] = (
    "chips",
    "cores_enabled_total",
    "cores_per_chip_part",
    "threads_per_core",
    "base_mhz",
    "max_turbo_mhz",
    "tdp_w",
    "l2_kb_per_core",
    "l3_mb_per_chip",
    "simd_bits",
    "fma_units",
    "hw_avail",
    "sw_avail",
    "test_month",
    "kernel_series",
)

_GROUP = "system"
_LOGS = (
    "chips",
    "cores_enabled_total",
    "hw_threads_total",
    "l3_mb_total",
    "clock_base_total_ghz",
    "clock_power_total_ghz",
)


def derive(table: Table) -> Table:
    """Append the machine's derived features. Raises ValueError when a required column is absent."""
    frame = require(table, REQUIRES)
    cores = frame["cores_enabled_total"]
    base_total = cores * frame["base_mhz"] / 1000
    test_year, hw_year, sw_year = (decimal_year(frame[name]) for name in ("test_month", "hw_avail", "sw_avail"))
    derived = [
        (
            feature("cores_enabled_share", _GROUP, "", "enabled cores / cores of the parts", 0),
            ratio(cores, frame["chips"] * frame["cores_per_chip_part"]),
        ),
        (
            feature("hw_threads_total", _GROUP, "", "hardware threads: cores x threads per core", 0),
            cores * frame["threads_per_core"],
        ),
        (
            feature("l2_mb_total", _GROUP, "MiB", "second-level cache of all cores", 0),
            cores * frame["l2_kb_per_core"] / 1024,
        ),
        (
            feature("l3_mb_total", _GROUP, "MiB", "last-level cache of all processors", 0, tags=(Tag.SCALING,)),
            frame["chips"] * frame["l3_mb_per_chip"],
        ),
        (
            feature("tdp_w_total", _GROUP, "W", "thermal design power of all processors", 0),
            frame["chips"] * frame["tdp_w"],
        ),
        (feature("clock_base_total_ghz", _GROUP, "GHz", "aggregate clock: cores x base clock", 0), base_total),
        (
            feature("clock_turbo_total_ghz", _GROUP, "GHz", "aggregate clock: cores x highest turbo clock", 0),
            cores * frame["max_turbo_mhz"] / 1000,
        ),
        (
            feature("clock_power_total_ghz", _GROUP, "GHz", "aggregate clock: cores x power-limited clock", 0),
            cores * power_clock_mhz(frame) / 1000,
        ),
        (
            feature("peak_gflops_base", _GROUP, "GFLOP/s", "operations per cycle and core x aggregate base clock", 0),
            flops_per_cycle(frame) * base_total,
        ),
        (feature("hw_avail_year", _GROUP, "year", "hardware availability as a decimal year"), hw_year),
        (feature("sw_avail_year", _GROUP, "year", "software availability as a decimal year"), sw_year),
        (
            feature("hw_age_years", _GROUP, "year", "test - hardware availability; may be negative"),
            test_year - hw_year,
        ),
        (
            feature("sw_age_years", _GROUP, "year", "test - software availability; may be negative"),
            test_year - sw_year,
        ),
        (
            feature("kernel_version", _GROUP, "", "kernel series as an ordered number: major + minor / 1000", 0),
            version_number(frame["kernel_series"]),
        ),
    ]
    extended = append(table, derived)
    return append(extended, logs(declared(extended, _LOGS)))
