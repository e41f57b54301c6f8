"""Table and notes on a measurement of the suite for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from rich.table import Table

from perfcast.microbench.suite import load_kernel

_INTERRUPTED = "!"
_MAX_OTHER_LOAD = 0.1
"""Cores that other processes can use before a note warns of them."""


def create_table(frame: pd.DataFrame, counts: Sequence[int]) -> Table:
    """Return the results of one kernel: a row per variant and size, a column per number of threads."""
    module = load_kernel(str(frame["kernel"].iloc[0]))
    unit = getattr(module, "INVERSE", module.UNIT)
    table = Table()
    table.add_column("variant")
    table.add_column("bytes per thread", justify="right")
    for count in counts:
        table.add_column(f"{count} thread{'s' if count > 1 else ''}\n{unit}", justify="right")
    table.add_column("spread\n%", justify="right")
    for (variant, size), rows in frame.groupby(["variant", "bytes"]):
        by_count = rows.set_index("threads")
        cells = [
            _format_cell(by_count.loc[[count]].iloc[0], module) if count in by_count.index else "- " for count in counts
        ]
        spread = f"{100 * rows['seconds_spread'].max():.1f}"
        table.add_row(str(variant), format_bytes(int(str(size))), *cells, spread)
    return table


def _format_cell(row: pd.Series, module: object) -> str:
    value = 1000 / row["rate"] if hasattr(module, "INVERSE") else row["rate"]
    return f"{value:.4g}{_INTERRUPTED if row['interrupted'] else ' '}"


def format_bytes(size: int) -> str:
    """Return e.g. '64 KiB'."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def list_notes(frame: pd.DataFrame, planned: int, minutes: float) -> list[str]:
    """Return notes on interference, missing configurations and the spread."""
    notes = []
    interrupted = int(frame["interrupted"].sum())
    if interrupted:
        notes.append(
            f"{_INTERRUPTED} other work interrupted every measurement of {interrupted} of {len(frame)} configurations; "
            "the dataset excludes them"
        )
    load = frame["other_load"].median()
    if load > _MAX_OTHER_LOAD:
        notes.append(
            f"other work kept {load:.1f} cores busy and shared caches, memory and clock; measure on an idle machine"
        )
    if frame[["waited_share", "stolen_share"]].isna().any(axis=None):
        notes.append("this system does not report whether other work interrupted the measurements")
    if not frame["pinned"].all():
        notes.append("this system does not allow threads to be pinned to cores (column pinned)")
    if planned > len(frame):
        notes.append(f"{planned - len(frame)} configurations are missing: the {minutes:g} minutes were too short")
    spread = 100 * frame["seconds_spread"].median()
    notes.append(f"measured {len(frame)} configurations; median spread (interquartile range / median): {spread:.1f} %")
    return notes
