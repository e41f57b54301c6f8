"""Features of the memory: channels filled, bandwidth and capacity, in all and per core."""

from __future__ import annotations

from perfcast.domains import read_columns
from perfcast.domains.servers.features.server_physics import channels_populated, mem_gbps_total
from perfcast.features.feature_math import append, arrays, is_true, ratio
from perfcast.schema.table import Table

REQUIRES = (
    "chips",
    "cores_enabled_total",
    "base_mhz",
    "mem_channels_per_chip",
    "mem_max_mts_1dpc",
    "mem_total_gb",
    "hbm_gb",
    "dimm_count",
    "dimm_ranks",
    "mem_eff_mts",
)
_LOGS = ("mem_total_gb", "mem_gbps_total", "mem_gbps_per_core", "mem_gbps_per_core_ghz", "mem_gb_per_core")
_COLUMNS = read_columns(__package__, "columns.csv", "memory")


def derive(table: Table) -> Table:
    """Append the memory's derived features. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    cores = frame["cores_enabled_total"]
    channels = frame["chips"] * frame["mem_channels_per_chip"]
    populated = channels_populated(frame)
    bandwidth = mem_gbps_total(frame)
    dimms_per_channel = ratio(frame["dimm_count"], channels)
    values = {
        "mem_channels_total": channels,
        "mem_channels_populated": populated,
        "mem_channels_filled": ratio(populated, channels),
        "dimms_per_channel": dimms_per_channel,
        "ranks_per_channel": frame["dimm_ranks"] * dimms_per_channel,
        "mem_speed_share": ratio(frame["mem_eff_mts"], frame["mem_max_mts_1dpc"]),
        "has_hbm": is_true(frame["hbm_gb"] > 0, frame["hbm_gb"]),
        "mem_gbps_total": bandwidth,
        "mem_gbps_per_chip": ratio(bandwidth, frame["chips"]),
        "mem_gbps_per_core": ratio(bandwidth, cores),
        "mem_gbps_per_core_ghz": ratio(bandwidth, cores * frame["base_mhz"] / 1000),
        "mem_gb_per_core": ratio(frame["mem_total_gb"], cores),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)
