"""Features of machines whose memory is behind a front-side bus: rates of the buses, in all and per core."""

from __future__ import annotations

import numpy as np

from perfcast.features.feature_math import append, arrays, feature, ratio
from perfcast.schema.table import Table, Tag

REQUIRES = ("bus_mts", "chips", "cores_enabled_total", "mem_gbps_total")
BUS_BYTES = 8
"""A front-side bus is 64 data bits wide."""

_PATH = "peak rate to memory: DDR channels, else buses"
_COLUMNS = (
    feature("has_bus", "memory", "", "1 where memory is behind a front-side bus", 0, 1),
    feature("bus_gbps_total", "memory", "GB/s", "peak rate of the front-side buses, one per processor", 0),
    feature("path_gbps_total", "memory", "GB/s", _PATH, 0, tags=[Tag.SCALING]),
    feature("path_gbps_per_core", "memory", "GB/s", "peak rate to memory / cores", 0),
)


def derive(table: Table) -> Table:
    """Append the bus's derived features. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    bus = frame["chips"] * frame["bus_mts"] * BUS_BYTES / 1000
    # A processor has either a bus or memory channels; one that states neither stays unknown.
    path = np.where(np.isnan(frame["mem_gbps_total"]), bus, frame["mem_gbps_total"])
    values = {
        "has_bus": ~np.isnan(bus),
        "bus_gbps_total": bus,
        "path_gbps_total": path,
        "path_gbps_per_core": ratio(path, frame["cores_enabled_total"]),
    }
    return append(table, _COLUMNS, values, logs=("path_gbps_total", "path_gbps_per_core"))
