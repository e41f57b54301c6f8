"""Features of a machine's power: design power of its components, clock per watt, and load of its power supplies."""

from __future__ import annotations

from perfcast.domains.servers.features.server_physics import power_clock_mhz
from perfcast.features.feature_math import append, arrays, decimal_year, feature, is_true, ratio
from perfcast.schema.table import Table, Tag

REQUIRES = (
    *(
        "chips",
        "cores_enabled_total",
        "cores_per_chip_of_cpu_model",
        "base_mhz",
        "max_turbo_mhz",
        "tdp_w",
        "dimm_count",
    ),
    *("psu_count", "psu_w", "nodes", "hw_avail", "launch_quarter"),
)
DIMM_W = 4.0
"""Watts of a registered DIMM at work: vendors' power calculators give 3 to 5 for DDR3 and DDR4."""

_GROUP = "system"
_COMPONENTS = f"processors' design power + {DIMM_W:g} W per DIMM"
_PER_W = "cores x power-limited clock / power of the components"
_COLUMNS = (
    feature("parts_w", _GROUP, "W", _COMPONENTS, 0, tags=[Tag.SCALING]),
    feature("base_ghz_per_w", _GROUP, "GHz/W", "cores x base clock / power of the components", 0),
    feature("power_ghz_per_w", _GROUP, "GHz/W", _PER_W, 0, tags=[Tag.SCALING]),
    feature("parts_w_per_core", _GROUP, "W", "power of the components / cores", 0),
    feature("psu_w_total", _GROUP, "W", "rating of all power supplies", 0),
    feature("psu_load", _GROUP, "", "power of the components / rating of all power supplies", 0),
    feature("shares_enclosure", _GROUP, "", "1 where several nodes share fans and supplies", 0, 1),
    feature("design_age_years", _GROUP, "year", "availability of the machine - launch of its processor"),
)


def derive(table: Table) -> Table:
    """Append the derived features of power. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    cores, supplies = frame["cores_enabled_total"], frame["psu_count"] * frame["psu_w"]
    watts = frame["chips"] * frame["tdp_w"] + frame["dimm_count"] * DIMM_W
    values = {
        "parts_w": watts,
        "base_ghz_per_w": ratio(cores * frame["base_mhz"] / 1000, watts),
        "power_ghz_per_w": ratio(cores * power_clock_mhz(frame) / 1000, watts),
        "parts_w_per_core": ratio(watts, cores),
        "psu_w_total": supplies,
        "psu_load": ratio(watts, supplies),
        "shares_enclosure": is_true(frame["nodes"] > 1, frame["nodes"]),
        "design_age_years": decimal_year(frame["hw_avail"]) - decimal_year(frame["launch_quarter"]),
    }
    return append(table, _COLUMNS, values, logs=("parts_w", "base_ghz_per_w", "power_ghz_per_w", "psu_w_total"))
