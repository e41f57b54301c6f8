"""Features of the whole machine: cores, threads, caches, aggregate clock, ages."""

from __future__ import annotations

from perfcast.domains import read_columns
from perfcast.domains.servers.features.server_physics import flops_per_cycle, power_clock_mhz
from perfcast.features.feature_math import append, arrays, decimal_year, ratio, version_number
from perfcast.schema.table import Table

REQUIRES = (
    "chips",
    "cores_enabled_total",
    "cores_per_chip_of_cpu_model",
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
_LOGS = (
    "chips",
    "cores_enabled_total",
    "hw_threads_total",
    "l3_mb_total",
    "clock_base_total_ghz",
    "clock_power_total_ghz",
)
_COLUMNS = read_columns(__package__, "columns.csv", "system")


def derive(table: Table) -> Table:
    """Append the machine's derived features. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    cores = frame["cores_enabled_total"]
    chips = frame["chips"]
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
