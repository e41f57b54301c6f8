"""Features of a machine's power: what its parts may draw, clock per watt, and how far its supplies are loaded."""

from __future__ import annotations

from perfcast.features.feature_math import append, decimal_year, declared, feature, logs, ratio, require
from perfcast.features.server_physics import power_clock_mhz
from perfcast.schema.table import Table, Tag

REQUIRES: tuple[str, ...] = (
    "chips",
    "cores_enabled_total",
    "cores_per_chip_part",
    "base_mhz",
    "max_turbo_mhz",
    "tdp_w",
    "dimm_count",
    "psu_count",
    "psu_w",
    "nodes",
    "hw_avail",
    "launch_quarter",
)
DIMM_W = 4.0
"""Watts of a registered DIMM at work: makers' power calculators give 3 to 5 for DDR3 and DDR4."""

_GROUP = "system"
_LOGS = ("parts_w", "base_ghz_per_w", "power_ghz_per_w", "psu_w_total")


def derive(table: Table) -> Table:
    """Append the derived features of power. Raises ValueError when a required column is absent."""
    frame = require(table, REQUIRES)
    cores = frame["cores_enabled_total"]
    parts = frame["chips"] * frame["tdp_w"] + frame["dimm_count"] * DIMM_W
    supplies = frame["psu_count"] * frame["psu_w"]
    derived = [
        (
            feature(
                "parts_w", _GROUP, "W", f"processors' design power + {DIMM_W:g} W per DIMM", 0, tags=(Tag.SCALING,)
            ),
            parts,
        ),
        (
            feature("base_ghz_per_w", _GROUP, "GHz/W", "cores x base clock / power of the parts", 0),
            ratio(cores * frame["base_mhz"] / 1000, parts),
        ),
        (
            feature(
                "power_ghz_per_w",
                _GROUP,
                "GHz/W",
                "cores x power-limited clock / power of the parts",
                0,
                tags=(Tag.SCALING,),
            ),
            ratio(cores * power_clock_mhz(frame) / 1000, parts),
        ),
        (feature("parts_w_per_core", _GROUP, "W", "power of the parts / cores", 0), ratio(parts, cores)),
        (feature("psu_w_total", _GROUP, "W", "rating of all power supplies", 0), supplies),
        (
            feature("psu_load", _GROUP, "", "power of the parts / rating of all power supplies", 0),
            ratio(parts, supplies),
        ),
        (
            feature("shares_enclosure", _GROUP, "", "1 where several nodes share fans and supplies", 0, 1),
            (frame["nodes"] > 1).astype("float64").where(frame["nodes"].notna()),
        ),
        (
            feature("design_age_years", _GROUP, "year", "availability of the machine - launch of its processor"),
            decimal_year(frame["hw_avail"]) - decimal_year(frame["launch_quarter"]),
        ),
    ]
    extended = append(table, derived)
    return append(extended, logs(declared(extended, _LOGS)))
