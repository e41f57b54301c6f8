"""Derived characteristics of a working set: how large it is beside the caches of the cores that work on it."""

from __future__ import annotations

import pandas as pd

from perfcast.features.feature_math import Pair, append, declared, feature, logs, ratio, require
from perfcast.schema.table import Column, Kind, Role, Table, Tag

REQUIRES: tuple[str, ...] = ("bytes", "threads", "cores", "threads_per_core", "l1d_kib", "l2_kib", "l3_kib")
_LOGS = ("bytes", "threads", "bytes_together", "bytes_over_l1d", "bytes_over_l2", "bytes_over_l3")


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of kernels with a size and threads.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    together = frame["bytes"] * frame["threads"]
    # first and second levels belong to one core, the last one to all: the caches are stated for the machine together
    cores = ratio(frame["cores"], frame["threads_per_core"].fillna(1))
    core_caches = {level: ratio(frame[f"{level}_kib"] * 1024, cores) for level in ("l1d", "l2")}
    derived: list[Pair] = [
        (feature("bytes_together", "problem", "B", "bytes of all threads together"), together),
        (
            feature("thread_share", "problem", "", "threads / logical processors of the machine"),
            ratio(frame["threads"], frame["cores"]),
        ),
        *[
            (
                feature(f"bytes_over_{level}", "machine", "", f"bytes of one thread / {level.upper()} of one core"),
                ratio(frame["bytes"], size),
            )
            for level, size in core_caches.items()
        ],
        (
            feature("bytes_over_l3", "machine", "", "bytes of all threads / L3 of the machine"),
            ratio(together, frame["l3_kib"] * 1024),
        ),
    ]
    extended = append(table, derived)
    extended = extended.with_columns([_cache_level(extended.frame)])
    return append(extended, logs(declared(extended, _LOGS)))


def _cache_level(frame: pd.DataFrame) -> Pair:
    """Return the name of the smallest cache level that holds the working set, missing where a size is unknown."""
    level = pd.Series("memory", index=frame.index, dtype="str")
    known = pd.Series(True, index=frame.index)
    for name in ("l3", "l2", "l1d"):
        level = level.mask(frame[f"bytes_over_{name}"] <= 1, name)
        known &= frame[f"bytes_over_{name}"].notna()
    meaning = "smallest cache level that holds the working set"
    column = Column("fits_in", Kind.CATEGORICAL, Role.FEATURE, "machine", meaning=meaning, tags=(Tag.SLICE,))
    return column, level.where(known)
