"""Shares of resources in the last second: the time that the victim had, of the time that it wanted.

Each share is 1 where nothing was waited for. A metric that the machine lacks gives no column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perfcast.features.feature_math import append, feature, require
from perfcast.schema.sequences import is_sequence, to_matrix
from perfcast.schema.table import Table

REQUIRES = ("neighbors", "cores")
GROUP = "shares"
CORE = "core_share"
SCHEDSTAT = "schedstat_share"
STALLS = {
    f"{owner}_{kind}_unstalled": f"{prefix}pressure.{kind}.some_seconds"
    for owner, prefix in (("victim", "group."), ("machine", ""))
    for kind in ("cpu", "memory", "io")
}
"""Column -> metric of pressure stall information: seconds per second in which some task waited for a resource."""
_PARTS = {
    "cpu_part": "cpu.usage_seconds",
    "fault_part": "memory.pgfault",
    "switch_part": "processes.nonvoluntary_ctxt_switches",
}
"""Column -> metric whose sum over victim and neighbors the victim has a part of."""


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    missing = np.full(len(part), np.nan)
    return np.asarray(np.divide(part, whole, out=missing, where=whole > 0))


def _part(mine: np.ndarray, others: np.ndarray) -> np.ndarray:
    return _ratio(mine, mine + others)


def _left(*used: np.ndarray) -> np.ndarray:
    """Return 1 - the first - the second and so on."""
    left = np.ones(len(used[0]))
    for share in used:
        left = left - share
    return left


class Share(NamedTuple):
    """Meaning of a share, the metrics that it needs, and its function of their last values."""

    meaning: str
    metrics: tuple[str, ...]
    value: Callable[..., np.ndarray]


_RUN = "group.processes.run_seconds"
_WAIT = "group.processes.wait_seconds"
_STALL = "group.pressure.cpu.some_seconds"
SHARES: dict[str, Share] = {
    SCHEDSTAT: Share(
        "time of the victim's threads on a processor / (that + time ready without one)",
        (_RUN, _WAIT),
        _part,
    ),
    # A closed loop that sleeps between its turns loses the waiting alone: run and sleep are those of the reference.
    "unwaited_share": Share("1 - time that the victim's threads were ready without a processor", (_WAIT,), _left),
    # A paced workload with time to sleep catches up, whatever it waited.
    "slept_share": Share("time in which the victim wanted no processor: 1 - run - wait", (_RUN, _WAIT), _left),
    # Stalls of several threads at once count once, so these hold for a server and its client too.
    "idle_share": Share(
        "time in which no thread of the victim ran or was ready: 1 - run - stall",
        (_RUN, _STALL),
        _left,
    ),
    "unstalled_run_share": Share(
        "time of the victim's threads on a processor / (that + time in which one was ready without)",
        (_RUN, _STALL),
        _part,
    ),
    "unthrottled_share": Share(
        "share of the periods of the processor quota that were not throttled; 1 without a quota",
        ("host.cpu.periods", "host.cpu.throttled_periods"),
        # without a quota there are no periods
        lambda periods, throttled: 1 - np.nan_to_num(_ratio(throttled, periods)),
    ),
}
for _name, _metric in STALLS.items():
    SHARES[_name] = Share(f"1 - {_metric}", (_metric,), _left)
for _name, _metric in _PARTS.items():
    SHARES[_name] = Share(f"part of the victim in {_metric}", (f"group.{_metric}", f"others.{_metric}"), _part)
_CORE_MEANING = "cores / (1 + neighbors), at most 1: every tenant has one thread"


def derive(table: Table) -> Table:
    """Append the shares, between 0 and 1. Raises ValueError when a column of `REQUIRES` is missing."""
    frame = require(table, REQUIRES)
    cores = frame["cores"].to_numpy(dtype=float)
    neighbors = frame["neighbors"].to_numpy(dtype=float)
    values = {CORE: np.minimum(1.0, cores / (1 + neighbors))}
    columns = [feature(CORE, GROUP, "1", _CORE_MEANING, 0, 1)]

    metrics = {metric for share in SHARES.values() for metric in share.metrics}
    last = {
        metric: to_matrix(frame[metric])[:, -1].astype(float)
        for metric in sorted(metrics)
        if metric in frame and is_sequence(frame[metric].dtype)
    }
    for name, share in SHARES.items():
        if all(metric in last for metric in share.metrics):
            value = share.value(*(last[metric] for metric in share.metrics))
            values[name] = np.clip(value, 0.0, 1.0)
            columns.append(feature(name, GROUP, "1", share.meaning, 0, 1))
    return append(table, columns, values)
