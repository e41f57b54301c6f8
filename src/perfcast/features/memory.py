"""Features of the memory: channels filled, bandwidth and capacity, in all and per core."""

from __future__ import annotations

from perfcast.features.feature_math import append, declared, feature, logs, ratio, require
from perfcast.features.server_physics import channels_populated, mem_gbps_total
from perfcast.schema.table import Table, Tag

REQUIRES: tuple[str, ...] = (
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

_GROUP = "memory"
_LOGS = ("mem_total_gb", "mem_gbps_total", "mem_gbps_per_core", "mem_gbps_per_core_ghz", "mem_gb_per_core")
_BANDWIDTH = "peak bandwidth: channels populated x effective MT/s x 8 bytes; DDR alone, missing without DIMMs"
_HBM = "1 where the package holds HBM, of which DDR bandwidth knows nothing"


def derive(table: Table) -> Table:
    """Append the memory's derived features. Raises ValueError when a required column is absent."""
    frame = require(table, REQUIRES)
    cores = frame["cores_enabled_total"]
    channels = frame["chips"] * frame["mem_channels_per_chip"]
    populated = channels_populated(frame)
    dimms_per_channel = ratio(frame["dimm_count"], channels)
    bandwidth = mem_gbps_total(frame)
    derived = [
        (feature("mem_channels_total", _GROUP, "", "memory channels of all processors", 0), channels),
        (
            feature("mem_channels_populated", _GROUP, "", "memory channels with a DIMM: min(DIMMs, channels)", 0),
            populated,
        ),
        (
            feature("mem_channels_filled", _GROUP, "", "share of the memory channels with a DIMM", 0, 1),
            ratio(populated, channels),
        ),
        (
            feature("dimms_per_channel", _GROUP, "", "DIMMs / memory channels; below 1 some are empty", 0),
            dimms_per_channel,
        ),
        (
            feature("ranks_per_channel", _GROUP, "", "DIMM ranks x DIMMs / memory channels", 0),
            frame["dimm_ranks"] * dimms_per_channel,
        ),
        (
            feature("mem_speed_share", _GROUP, "", "effective MT/s / the processor's highest", 0),
            ratio(frame["mem_eff_mts"], frame["mem_max_mts_1dpc"]),
        ),
        (
            feature("has_hbm", _GROUP, "", _HBM, 0, 1),
            (frame["hbm_gb"] > 0).astype("float64").where(frame["hbm_gb"].notna()),
        ),
        (feature("mem_gbps_total", _GROUP, "GB/s", _BANDWIDTH, 0, tags=(Tag.SCALING,)), bandwidth),
        (
            feature("mem_gbps_per_chip", _GROUP, "GB/s", "peak DDR bandwidth / processors", 0),
            ratio(bandwidth, frame["chips"]),
        ),
        (
            feature("mem_gbps_per_core", _GROUP, "GB/s", "peak DDR bandwidth / cores", 0),
            ratio(bandwidth, cores),
        ),
        (
            feature("mem_gbps_per_core_ghz", _GROUP, "B/cycle", "peak DDR bandwidth / (cores x base GHz)", 0),
            ratio(bandwidth, cores * frame["base_mhz"] / 1000),
        ),
        (
            feature("mem_gb_per_core", _GROUP, "GiB", "memory capacity / cores", 0),
            ratio(frame["mem_total_gb"], cores),
        ),
    ]
    extended = append(table, derived)
    return append(extended, logs(declared(extended, _LOGS)))
