"""Features of the whole machine: cores, threads, caches, aggregate clock, ages."""

from __future__ import annotations

from perfcast.domains.servers.features.server_physics import flops_per_cycle, power_clock_mhz
from perfcast.features.feature_math import append, arrays, decimal_year, feature, ratio, version_number
from perfcast.schema.table import Table, Tag

REQUIRES = (
    *(
        "chips",
        "cores_enabled_total",
        "cores_per_chip_of_cpu_model",
        "threads_per_core",
        "base_mhz",
        "max_turbo_mhz",
        "tdp_w",
    ),
    *("l2_kb_per_core", "l3_mb_per_chip", "simd_bits", "fma_units"),
    *("hw_avail", "sw_avail", "test_month", "kernel_series"),
)
_GROUP = "system"
_LOGS = (
    *("chips", "cores_enabled_total", "hw_threads_total", "l3_mb_total"),
    *("clock_base_total_ghz", "clock_power_total_ghz"),
)
_COLUMNS = (
    feature("cores_enabled_share", _GROUP, "", "enabled cores / cores of the CPU models", 0),
    feature("hw_threads_total", _GROUP, "", "hardware threads: cores x threads per core", 0),
    feature("l2_mb_total", _GROUP, "MiB", "second-level cache of all cores", 0),
    feature("l3_mb_total", _GROUP, "MiB", "last-level cache of all processors", 0, tags=[Tag.SCALING]),
    feature("tdp_w_total", _GROUP, "W", "thermal design power of all processors", 0),
    feature("clock_base_total_ghz", _GROUP, "GHz", "aggregate clock: cores x base clock", 0),
    feature("clock_turbo_total_ghz", _GROUP, "GHz", "aggregate clock: cores x highest turbo clock", 0),
    feature("clock_power_total_ghz", _GROUP, "GHz", "aggregate clock: cores x power-limited clock", 0),
    feature("peak_gflops_base", _GROUP, "GFLOP/s", "operations per cycle and core x aggregate base clock", 0),
    feature("hw_avail_year", _GROUP, "year", "hardware availability as a decimal year"),
    feature("sw_avail_year", _GROUP, "year", "software availability as a decimal year"),
    feature("hw_age_years", _GROUP, "year", "test - hardware availability; may be negative"),
    feature("sw_age_years", _GROUP, "year", "test - software availability; may be negative"),
    feature("kernel_version", _GROUP, "", "kernel series as an ordered number: major + minor / 1000", 0),
)


def derive(table: Table) -> Table:
    """Append the machine's derived features. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    cores, chips = frame["cores_enabled_total"], frame["chips"]
    base_total = cores * frame["base_mhz"] / 1000
    test_year, hw_year, sw_year = (decimal_year(frame[name]) for name in ("test_month", "hw_avail", "sw_avail"))
    values = {
        "cores_enabled_share": ratio(cores, chips * frame["cores_per_chip_of_cpu_model"]),
        "hw_threads_total": cores * frame["threads_per_core"],
        "l2_mb_total": cores * frame["l2_kb_per_core"] / 1024,
        "l3_mb_total": chips * frame["l3_mb_per_chip"],
        "tdp_w_total": chips * frame["tdp_w"],
        "clock_base_total_ghz": base_total,
        "clock_turbo_total_ghz": cores * frame["max_turbo_mhz"] / 1000,
        "clock_power_total_ghz": cores * power_clock_mhz(frame) / 1000,
        "peak_gflops_base": flops_per_cycle(frame) * base_total,
        "hw_avail_year": hw_year,
        "sw_avail_year": sw_year,
        "hw_age_years": test_year - hw_year,
        "sw_age_years": test_year - sw_year,
        "kernel_version": version_number(frame["kernel_series"]),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)
