"""Shares of resources in the last second: the time that the victim had, of the time that it wanted.

Each share is 1 where nothing was waited for. A metric that the machine lacks gives no column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from perfcast.features.feature_math import append, feature, require
from perfcast.schema.sequences import is_sequence, to_matrix
from perfcast.schema.table import Column, Table

REQUIRES = ("neighbors", "cores")
GROUP = "shares"
CORE, SCHEDSTAT, UNTHROTTLED = "core_share", "schedstat_share", "unthrottled_share"
STALLS = {
    f"{owner}_{kind}_unstalled": f"{prefix}pressure.{kind}.some_seconds"
    for owner, prefix in (("victim", "group."), ("machine", ""))
    for kind in ("cpu", "memory", "io")
}
"""Column -> metric of pressure stall information: seconds per second in which some task waited for a resource."""
_PARTS = {
    "cpu_part": "cpu.usage_seconds",
    "fault_part": "memory.pgfault",
    "read_part": "io.read_bytes",
    "written_part": "io.written_bytes",
    "switch_part": "processes.nonvoluntary_ctxt_switches",
}
"""Column -> metric whose sum over victim and neighbors the victim has a part of."""

Values = Mapping[str, np.ndarray]
Share = tuple[tuple[str, ...], Callable[[Values], np.ndarray], str]
"""Metrics that a share needs, its function of their last values, and its meaning."""


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _stall(metric: str) -> Share:
    return (metric,), lambda last: 1 - last[metric], f"1 - {metric}"


def _part(metric: str) -> Share:
    mine, others = f"group.{metric}", f"others.{metric}"
    return (mine, others), lambda last: _ratio(last[mine], last[mine] + last[others]), f"part of the victim in {metric}"


_RUN, _WAIT = "group.processes.run_seconds", "group.processes.wait_seconds"
_PERIODS, _THROTTLED = "host.cpu.periods", "host.cpu.throttled_periods"
_DISK_WAIT = "group.processes.disk_wait_seconds"
SHARES: dict[str, Share] = {
    SCHEDSTAT: (
        (_RUN, _WAIT),
        lambda last: _ratio(last[_RUN], last[_RUN] + last[_WAIT]),
        "time of the victim's threads on a processor / (that + time ready without one)",
    ),
    UNTHROTTLED: (
        (_PERIODS, _THROTTLED),
        # without a quota there are no periods
        lambda last: 1 - np.nan_to_num(_ratio(last[_THROTTLED], last[_PERIODS])),
        "share of the periods of the processor quota that were not throttled; 1 without a quota",
    ),
    "disk_unwaited": ((_DISK_WAIT,), lambda last: 1 - last[_DISK_WAIT], "1 - time that processes waited for disks"),
    **{name: _stall(metric) for name, metric in STALLS.items()},
    **{name: _part(metric) for name, metric in _PARTS.items()},
}
_CORE_MEANING = "cores / (1 + neighbors), at most 1: every tenant has one thread"


def derive(table: Table) -> Table:
    """Append the shares, between 0 and 1. Raises ValueError when a column of `REQUIRES` is missing."""
    frame = require(table, REQUIRES)
    cores, neighbors = (frame[name].to_numpy(dtype=float) for name in ("cores", "neighbors"))
    needed = {metric for metrics, _, _ in SHARES.values() for metric in metrics}
    present = [metric for metric in sorted(needed) if metric in frame and is_sequence(frame[metric].dtype)]
    values = compute_shares({metric: _last(table, metric) for metric in present}, cores, neighbors)
    meanings = {CORE: _CORE_MEANING, **{name: meaning for name, (_, _, meaning) in SHARES.items()}}
    return append(table, [_declare(name, meanings[name]) for name in values], values)


def compute_shares(last: Values, cores: np.ndarray, neighbors: np.ndarray) -> dict[str, np.ndarray]:
    """Return the shares whose metrics are given, by name. Shapes: all arrays (n,), `last` by metric."""
    values = {CORE: np.minimum(1.0, cores / (1 + neighbors))}
    for name, (metrics, compute, _) in SHARES.items():
        if all(metric in last for metric in metrics):
            values[name] = np.clip(compute(last), 0.0, 1.0)
    return values


def _declare(name: str, meaning: str) -> Column:
    return feature(name, GROUP, "1", meaning, 0, 1)


def _last(table: Table, metric: str) -> np.ndarray:
    return to_matrix(table.frame[metric])[:, -1].astype(float)
