"""Features of machines whose memory is behind a front-side bus: how much the buses carry, in all and per core."""

from __future__ import annotations

from perfcast.features.feature_math import append, declared, feature, logs, ratio, require
from perfcast.schema.table import Table, Tag

REQUIRES: tuple[str, ...] = ("bus_mts", "chips", "cores_enabled_total", "mem_gbps_total")

_GROUP = "memory"
_LOGS = ("path_gbps_total", "path_gbps_per_core")
BUS_BYTES = 8
"""A front-side bus is 64 data bits wide."""


def derive(table: Table) -> Table:
    """Append the bus's derived features. Raises ValueError when a required column is absent."""
    frame = require(table, REQUIRES)
    bus = frame["chips"] * frame["bus_mts"] * BUS_BYTES / 1000
    # A processor has either a bus or memory channels of its own; a part that states neither stays unknown.
    path = frame["mem_gbps_total"].where(frame["mem_gbps_total"].notna(), bus)
    derived = [
        (
            feature("has_bus", _GROUP, "", "1 where memory is behind a front-side bus", 0, 1),
            bus.notna().astype("float64"),
        ),
        (feature("bus_gbps_total", _GROUP, "GB/s", "peak rate of the front-side buses, one per processor", 0), bus),
        (
            feature(
                "path_gbps_total",
                _GROUP,
                "GB/s",
                "peak rate to memory: DDR channels, else buses",
                0,
                tags=(Tag.SCALING,),
            ),
            path,
        ),
        (
            feature("path_gbps_per_core", _GROUP, "GB/s", "peak rate to memory / cores", 0),
            ratio(path, frame["cores_enabled_total"]),
        ),
    ]
    extended = append(table, derived)
    return append(extended, logs(declared(extended, _LOGS)))
