"""Features of one processor: power, clock, vector width, caches per core."""

from __future__ import annotations

from perfcast.data.processors.sustained_clock import POWER_CLOCK_MHZ
from perfcast.features.feature_math import append, decimal_year, declared, feature, logs, ratio, require
from perfcast.features.server_physics import flops_per_cycle, power_clock_mhz
from perfcast.schema.table import Table, Tag

REQUIRES: tuple[str, ...] = (
    "base_mhz",
    "max_turbo_mhz",
    "tdp_w",
    "cores_per_chip_part",
    "l3_mb_per_chip",
    "simd_bits",
    "fma_units",
    "launch_quarter",
)

_GROUP = "processor"
_LOGS = ("base_mhz", "cores_per_chip_part", "tdp_w_per_core", "power_clock_mhz", "l3_mb_per_core")
_POWER_CLOCK = f"clock all cores can hold: soft minimum of turbo and {POWER_CLOCK_MHZ:.0f} MHz x (W per core)^(1/3)"


def derive(table: Table) -> Table:
    """Append the processor's derived features. Raises ValueError when a required column is absent."""
    frame = require(table, REQUIRES)
    cores = frame["cores_per_chip_part"]
    derived = [
        (
            feature("turbo_ratio", _GROUP, "", "highest turbo clock / base clock", 0),
            ratio(frame["max_turbo_mhz"], frame["base_mhz"]),
        ),
        (
            feature("tdp_w_per_core", _GROUP, "W", "thermal design power / cores of the part", 0),
            ratio(frame["tdp_w"], cores),
        ),
        (
            feature("power_clock_mhz", _GROUP, "MHz", _POWER_CLOCK, 0, tags=(Tag.SCALING,)),
            power_clock_mhz(frame),
        ),
        (
            feature(
                "flops_per_cycle",
                _GROUP,
                "1/cycle",
                "double-precision operations per cycle and core",
                0,
                tags=(Tag.SCALING,),
            ),
            flops_per_cycle(frame),
        ),
        (
            feature("l3_mb_per_core", _GROUP, "MiB", "last-level cache / cores of the part", 0),
            ratio(frame["l3_mb_per_chip"], cores),
        ),
        (
            feature("launch_year", _GROUP, "year", "launch of the part as a decimal year"),
            decimal_year(frame["launch_quarter"]),
        ),
    ]
    extended = append(table, derived)
    return append(extended, logs(declared(extended, _LOGS)))
