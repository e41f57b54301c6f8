"""Derived characteristics of a training run: logarithms of its size, length and compute.

Losses fall with powers of parameters and tokens, so models that are linear in a feature need the logarithm.
"""

from __future__ import annotations

from perfcast.features.feature_math import append_logs, require
from perfcast.schema.table import Table

REQUIRES = ("params", "tokens", "compute")


def derive(table: Table) -> Table:
    """Append the logarithms of parameters, tokens and compute.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    require(table, REQUIRES)
    return append_logs(table, REQUIRES)
