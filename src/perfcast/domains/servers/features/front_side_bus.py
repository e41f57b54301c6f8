"""Features of machines whose memory is behind a front-side bus: rates of the buses, in all and per core."""

from __future__ import annotations

import numpy as np

from perfcast.domains.servers.data_tables import read_columns
from perfcast.features.feature_math import append, arrays, ratio
from perfcast.schema.table import Table

REQUIRES = ("bus_mts", "chips", "cores_enabled_total", "mem_gbps_total")
BUS_BYTES = 8
"""A front-side bus is 64 data bits wide."""

_COLUMNS = read_columns(__package__, "columns.csv", "front_side_bus")


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
