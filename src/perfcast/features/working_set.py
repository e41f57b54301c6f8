"""Derived characteristics of a working set: its size relative to the caches of the cores that work on it."""

from __future__ import annotations

from perfcast.features.feature_math import append, append_cache_level, append_logs, feature, ratio, require
from perfcast.schema.table import Table

REQUIRES = ("bytes", "threads", "cores", "threads_per_core", "l1d_kib", "l2_kib", "l3_kib")
_LOGS = ("bytes", "threads", "bytes_together", "bytes_over_l1d", "bytes_over_l2", "bytes_over_l3")
_COLUMNS = (
    feature("bytes_together", "problem", "B", "bytes of all threads together"),
    feature("thread_share", "problem", "", "threads / logical processors of the machine"),
    feature("bytes_over_l1d", "machine", "", "bytes of one thread / L1D of one core"),
    feature("bytes_over_l2", "machine", "", "bytes of one thread / L2 of one core"),
    feature("bytes_over_l3", "machine", "", "bytes of all threads / L3 of the machine"),
)


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of kernels with a size and threads.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    together = frame["bytes"] * frame["threads"]
    # first and second levels belong to one core, the last one to all: the caches are stated for the machine together
    cores = ratio(frame["cores"], frame["threads_per_core"].fillna(1))
    values = {
        "bytes_together": together,
        "thread_share": ratio(frame["threads"], frame["cores"]),
        "bytes_over_l1d": ratio(frame["bytes"], ratio(frame["l1d_kib"] * 1024, cores)),
        "bytes_over_l2": ratio(frame["bytes"], ratio(frame["l2_kib"] * 1024, cores)),
        "bytes_over_l3": ratio(together, frame["l3_kib"] * 1024),
    }
    extended = append(table, _COLUMNS, values)
    shares = {level: extended.frame[f"bytes_over_{level}"] for level in ("l3", "l2", "l1d")}
    return append_logs(append_cache_level(extended, shares, "the working set"), _LOGS)
