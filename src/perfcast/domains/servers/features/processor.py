"""Features of one processor: power, clock, vector width, caches per core."""

from __future__ import annotations

from perfcast.domains.servers.features.server_physics import POWER_CLOCK_MHZ, flops_per_cycle, power_clock_mhz
from perfcast.features.feature_math import append, arrays, decimal_year, feature, ratio
from perfcast.schema.table import Table, Tag

REQUIRES = (
    *("base_mhz", "max_turbo_mhz", "tdp_w", "cores_per_chip_of_cpu_model"),
    *("l3_mb_per_chip", "simd_bits", "fma_units", "launch_quarter"),
)
_GROUP = "processor"
_LOGS = ("base_mhz", "cores_per_chip_of_cpu_model", "tdp_w_per_core", "power_clock_mhz", "l3_mb_per_core")
_POWER_CLOCK = f"clock all cores can hold: soft minimum of turbo and {POWER_CLOCK_MHZ:.0f} MHz x (W per core)^(1/3)"
_FLOPS = "double-precision operations per cycle and core"
_COLUMNS = (
    feature("turbo_ratio", _GROUP, "", "highest turbo clock / base clock", 0),
    feature("tdp_w_per_core", _GROUP, "W", "thermal design power / cores of the CPU model", 0),
    feature("power_clock_mhz", _GROUP, "MHz", _POWER_CLOCK, 0, tags=[Tag.SCALING]),
    feature("flops_per_cycle", _GROUP, "1/cycle", _FLOPS, 0, tags=[Tag.SCALING]),
    feature("l3_mb_per_core", _GROUP, "MiB", "last-level cache / cores of the CPU model", 0),
    feature("launch_year", _GROUP, "year", "launch of the CPU model as a decimal year"),
)


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
