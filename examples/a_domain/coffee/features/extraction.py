"""Resistance of the puck: a flow through grains grows with the square of their size (Kozeny and Carman)."""

from perfcast.features.feature_math import append, arrays, feature
from perfcast.schema.table import Table

REQUIRES = ("dose_g", "grind_um", "pressure_bar")
RESISTANCE = feature("puck_resistance", "cup", "g/um2/bar", "dose / grind^2 / pressure")


def derive(table: Table) -> Table:
    """Append the resistance of the puck and its logarithm."""
    cup = arrays(table, REQUIRES)
    values = {RESISTANCE.name: cup["dose_g"] / cup["grind_um"] ** 2 / cup["pressure_bar"]}
    return append(table, [RESISTANCE], values, logs=[RESISTANCE.name])
