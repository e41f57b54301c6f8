"""Features of what ran: the compiler that built it, as an ordered number and an age."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import numpy as np
import pandas as pd

from perfcast.domains import read_columns
from perfcast.features.feature_math import append, arrays, decimal_year, map_distinct, version_number
from perfcast.schema.table import Table

REQUIRES = ("compiler_vendor", "compiler_major_minor", "test_month")
_COLUMNS = read_columns(__package__, "columns.csv", "workload")


def derive(table: Table) -> Table:
    """Append the workload's derived features. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    number = version_number(frame["compiler_major_minor"])
    released = _release_year(frame["compiler_vendor"], frame["compiler_major_minor"])
    values = {
        # Intel's numbers run 18.0, 19.0, 19.1, 2021.1: without the century the steps stay steps.
        "compiler_version": np.where(number < 2000, number, number - 2000),
        "compiler_release_year": released,
        "compiler_age_years": decimal_year(frame["test_month"]) - released,
    }
    return append(table, _COLUMNS, values)


def _release_year(vendor: np.ndarray, version: np.ndarray) -> np.ndarray:
    """Look the release up by the vendor's first word (Intel's code bases share their numbers) and major.minor."""
    releases = _releases()

    def find(vendor: str, version: str) -> float | None:
        brand = re.sub(r"\s.*", "", vendor.lower())
        return releases.get(f"{brand} {version}")

    return map_distinct(find, vendor, version).astype("float64")


@cache
def _releases() -> dict[str, float]:
    text = resources.files("perfcast.domains.servers.features").joinpath("compilers.csv")
    with text.open(encoding="utf-8") as file:
        table = pd.read_csv(file, dtype="str")
    years = decimal_year(table["released"].to_numpy(dtype="datetime64[M]"))
    return dict(zip(table["vendor"] + " " + table["version"], years.tolist(), strict=True))
