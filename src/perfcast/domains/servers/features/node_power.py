"""Features of a machine's power: design power of its components, clock per watt, and load of its power supplies."""

from __future__ import annotations

from perfcast.domains import read_columns
from perfcast.domains.servers.features.server_physics import power_clock_mhz
from perfcast.features.feature_math import append, arrays, decimal_year, is_true, ratio
from perfcast.schema.table import Table

REQUIRES = (
    "chips",
    "cores_enabled_total",
    "cores_per_chip_of_cpu_model",
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
"""Watts of a registered DIMM at work: vendors' power calculators give 3 to 5 for DDR3 and DDR4."""

_COLUMNS = read_columns(__package__, "columns.csv", "node_power")


def derive(table: Table) -> Table:
    """Append the derived features of power. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    cores = frame["cores_enabled_total"]
    supplies = frame["psu_count"] * frame["psu_w"]
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
    return append(
        table,
        _COLUMNS,
        values,
        logs=(
            "parts_w",
            "base_ghz_per_w",
            "power_ghz_per_w",
            "psu_w_total",
        ),
    )
