"""Features of one processor: power, clock, vector width, caches per core."""

from __future__ import annotations

from perfcast.domains import read_columns
from perfcast.domains.servers.features.server_physics import flops_per_cycle, power_clock_mhz
from perfcast.features.feature_math import append, arrays, decimal_year, ratio
from perfcast.schema.table import Table

REQUIRES = (
    "base_mhz",
    "max_turbo_mhz",
    "tdp_w",
    "cores_per_chip_of_cpu_model",
    "l3_mb_per_chip",
    "simd_bits",
    "fma_units",
    "launch_quarter",
)
_LOGS = ("base_mhz", "cores_per_chip_of_cpu_model", "tdp_w_per_core", "power_clock_mhz", "l3_mb_per_core")
_COLUMNS = read_columns(__package__, "columns.csv", "processor")


def derive(table: Table) -> Table:
    """Append the processor's derived features. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    values = {
        "turbo_ratio": ratio(frame["max_turbo_mhz"], frame["base_mhz"]),
        "tdp_w_per_core": ratio(frame["tdp_w"], frame["cores_per_chip_of_cpu_model"]),
        "power_clock_mhz": power_clock_mhz(frame),
        "flops_per_cycle": flops_per_cycle(frame),
        "l3_mb_per_core": ratio(frame["l3_mb_per_chip"], frame["cores_per_chip_of_cpu_model"]),
        "launch_year": decimal_year(frame["launch_quarter"]),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)
