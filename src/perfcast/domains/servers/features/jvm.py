"""Features of a Java benchmark: the virtual machine as an ordered number and an age, memory of a hardware thread."""

from __future__ import annotations

import numpy as np

from perfcast.domains import read_columns
from perfcast.features.feature_math import append, arrays, decimal_year, ratio
from perfcast.schema.table import Table

REQUIRES = (
    "jvm_release",
    "jvm_update",
    "test_month",
    "mem_total_gb",
    "cores_enabled_total",
    "threads_per_core",
    "nodes",
)
RELEASED = {
    5: 2004.75,
    6: 2006.92,
    7: 2011.5,
    8: 2014.17,
    9: 2017.67,
}
"""Java release -> decimal year of its general availability (OpenJDK project pages); from 10 on one every half year."""

_FIRST_HALF_YEARLY = 10
_ITS_YEAR = 2018.17
_COLUMNS = read_columns(__package__, "columns.csv", "jvm")


def derive(table: Table) -> Table:
    """Append the derived features of a Java benchmark. Raises ValueError when a required column is absent."""
    frame = arrays(table, REQUIRES)
    released = _release_year(frame["jvm_release"])
    values = {
        "jvm_version": frame["jvm_release"] + np.nan_to_num(frame["jvm_update"]) / 1000,
        "jvm_release_year": released,
        "jvm_age_years": decimal_year(frame["test_month"]) - released,
        "mem_gb_per_thread": ratio(frame["mem_total_gb"], frame["cores_enabled_total"] * frame["threads_per_core"]),
        "cores_per_node": ratio(frame["cores_enabled_total"], frame["nodes"]),
    }
    return append(table, _COLUMNS, values, logs=["mem_gb_per_thread"])


def _release_year(release: np.ndarray) -> np.ndarray:
    half_yearly = _ITS_YEAR + (release - _FIRST_HALF_YEARLY) / 2
    earlier = np.array([RELEASED.get(number, np.nan) for number in release.tolist()], dtype=float)
    return np.where(release >= _FIRST_HALF_YEARLY, half_yearly, earlier)
