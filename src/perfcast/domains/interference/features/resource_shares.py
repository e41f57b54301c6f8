"""Shares of resources in the last second: the time that the victim had, of the time that it wanted.

Each share is 1 where nothing was waited for. A metric that the machine lacks gives no column.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

import numpy as np

from perfcast.features.feature_math import append, feature, require
from perfcast.schema.sequences import is_sequence, to_matrix
from perfcast.schema.table import Column, Table

REQUIRES = ("neighbors", "cores")
GROUP = "shares"
CORE, SCHEDSTAT, UNTHROTTLED = "core_share", "schedstat_share", "unthrottled_share"
IDLE, UNSTALLED_RUN = "idle_share", "unstalled_run_share"
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
Form = tuple[tuple[str, ...], Callable[[Values], np.ndarray]]
"""Metrics that a share needs, and its function of their last values."""


@dataclass(frozen=True)
class Share:
    """Meaning of a share, and its forms: the first one counts whose metrics are there.

    The measurement drops a metric that repeats an earlier one, so a share may need another form of itself.
    """

    meaning: str
    forms: tuple[Form, ...]

    def form_of(self, present: Container[str]) -> Form | None:
        """Return the form whose metrics are present, None without any."""
        return next((form for form in self.forms if all(metric in present for metric in form[0])), None)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def _stall(metric: str) -> Share:
    return Share(f"1 - {metric}", (((metric,), lambda last: 1 - last[metric]),))


def _part(metric: str) -> Share:
    mine, others = f"group.{metric}", f"others.{metric}"
    form: Form = ((mine, others), lambda last: _ratio(last[mine], last[mine] + last[others]))
    return Share(f"part of the victim in {metric}", (form,))


def _run_share(run: str, wait: str) -> Form:
    return (run, wait), lambda last: _ratio(last[run], last[run] + last[wait])


def _idle_time(run: str, wait: str) -> Form:
    return (run, wait), lambda last: 1 - last[run] - last[wait]


_RUN, _USAGE = "group.processes.run_seconds", "group.cpu.usage_seconds"
_STALL = "group.pressure.cpu.some_seconds"
_WAIT = "group.processes.wait_seconds"
_RUN_SHARE = "group.processes.run_share"
_PERIODS, _THROTTLED, _THROTTLED_TIME = "host.cpu.periods", "host.cpu.throttled_periods", "host.cpu.throttled_seconds"
_DISK_WAIT = "group.processes.disk_wait_seconds"
SHARES: dict[str, Share] = {
    SCHEDSTAT: Share(
        "time of the victim's threads on a processor / (that + time ready without one)",
        (
            _run_share(_RUN, _WAIT),
            _run_share(_USAGE, _WAIT),
            ((_RUN_SHARE,), lambda last: last[_RUN_SHARE]),
        ),
    ),
    # A closed loop that sleeps between its turns loses the waiting alone: run and sleep are those of the reference.
    "unwaited_share": Share(
        "1 - time that the victim's threads were ready without a processor", (((_WAIT,), lambda last: 1 - last[_WAIT]),)
    ),
    # A paced workload with time to sleep catches up, whatever it waited.
    "slept_share": Share(
        "time in which the victim wanted no processor: 1 - run - wait",
        (_idle_time(_RUN, _WAIT), _idle_time(_USAGE, _WAIT)),
    ),
    # Stalls of several threads at once count once, so these hold for a server and its client too.
    IDLE: Share(
        "time in which no thread of the victim ran or was ready: 1 - run - stall",
        (_idle_time(_RUN, _STALL), _idle_time(_USAGE, _STALL)),
    ),
    UNSTALLED_RUN: Share(
        "time of the victim's threads on a processor / (that + time in which one was ready without)",
        (_run_share(_RUN, _STALL), _run_share(_USAGE, _STALL)),
    ),
    UNTHROTTLED: Share(
        "share of the periods of the processor quota that were not throttled; 1 without a quota",
        (
            # without a quota there are no periods
            ((_PERIODS, _THROTTLED), lambda last: 1 - np.nan_to_num(_ratio(last[_THROTTLED], last[_PERIODS]))),
            ((_THROTTLED_TIME,), lambda last: 1 - np.nan_to_num(last[_THROTTLED_TIME])),
        ),
    ),
    "disk_unwaited": Share(
        "1 - time that processes waited for disks", (((_DISK_WAIT,), lambda last: 1 - last[_DISK_WAIT]),)
    ),
    **{name: _stall(metric) for name, metric in STALLS.items()},
    **{name: _part(metric) for name, metric in _PARTS.items()},
}
_CORE_MEANING = "cores / (1 + neighbors), at most 1: every tenant has one thread"


def derive(table: Table) -> Table:
    """Append the shares, between 0 and 1. Raises ValueError when a column of `REQUIRES` is missing."""
    frame = require(table, REQUIRES)
    cores, neighbors = (frame[name].to_numpy(dtype=float) for name in ("cores", "neighbors"))
    needed = {metric for share in SHARES.values() for metrics, _ in share.forms for metric in metrics}
    present = [metric for metric in sorted(needed) if metric in frame and is_sequence(frame[metric].dtype)]
    values = compute_shares({metric: _last(table, metric) for metric in present}, cores, neighbors)
    meanings = {CORE: _CORE_MEANING, **{name: share.meaning for name, share in SHARES.items()}}
    return append(table, [_declare(name, meanings[name]) for name in values], values)


def compute_shares(last: Values, cores: np.ndarray, neighbors: np.ndarray) -> dict[str, np.ndarray]:
    """Return the shares whose metrics are given, by name. Shapes: all arrays (n,), `last` by metric."""
    values = {CORE: np.minimum(1.0, cores / (1 + neighbors))}
    for name, share in SHARES.items():
        if form := share.form_of(last):
            values[name] = np.clip(form[1](last), 0.0, 1.0)
    return values


def _declare(name: str, meaning: str) -> Column:
    return feature(name, GROUP, "1", meaning, 0, 1)


def _last(table: Table, metric: str) -> np.ndarray:
    return to_matrix(table.frame[metric])[:, -1].astype(float)
