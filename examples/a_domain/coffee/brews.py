"""Brewed cups: one row per cup and drink; the target is the time of the extraction."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfcast.data.measured_tables import describe_first_bad, parse_numbers, quarantine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, read_rows
from perfcast.schema.declare import category, key, number
from perfcast.schema.table import Column, Kind, Role, Tag, build_table, outside

SOURCE, FILE = "coffee_brews", "brews.csv"
DRINKS, SETTINGS = ["espresso", "lungo"], ["dose_g", "grind_um", "pressure_bar"]
_SETTING = (Tag.IDENTITY, Tag.SCALING)
COLUMNS = (
    key("cup", "line of the cup and drink", Tag.ROW, Tag.BLOCK),
    key("machine", "name of the espresso machine", Tag.ENTITY, Tag.IDENTITY),
    category("drink", Role.FEATURE, "cup", "espresso or lungo", Tag.TASK),
    number("dose_g", "cup", "ground coffee", unit="g", high=40, tags=_SETTING),
    number("grind_um", "cup", "mean size of the grains", unit="um", low=50, high=2000, tags=_SETTING),
    number("pressure_bar", "machine", "pressure of the pump", unit="bar", high=20, tags=_SETTING),
    Column("seconds", Kind.NUMERICAL, Role.TARGET, "cup", "s", "time of the extraction; lower is better", low=1),
)
NUMBERS = {column.name: column for column in COLUMNS if column.kind is Kind.NUMERICAL}


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the cups; a row with a number that is missing or outside its bounds is quarantined."""
    rows = read_rows(SOURCE, raw[SOURCE] / FILE, ["machine", *SETTINGS, *DRINKS])
    cups = rows.frame.melt(["machine", *SETTINGS, "line"], DRINKS, "drink", "seconds")
    cups = parse_numbers(cups.assign(cup=cups["line"].astype("str") + "-" + cups["drink"]), [*NUMBERS])
    bad = cups[[*NUMBERS]].apply(lambda values: values.isna() | outside(values, NUMBERS[values.name]))
    good, rejections = quarantine(SOURCE, FILE, cups, {"bad_number": describe_first_bad(bad, cups)})
    rejected = build_rejected_frame([*rows.rejections, *rejections])
    return Standardized(build_table(SOURCE, good, COLUMNS), rejected, len(cups) + len(rows.rejections))
