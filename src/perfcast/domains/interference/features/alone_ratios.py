"""Ratios of the victim's metrics now to those alone, for tenants that the host has seen alone."""

from __future__ import annotations

import numpy as np

from perfcast.features.feature_math import append, feature
from perfcast.schema.sequences import is_sequence, to_matrix
from perfcast.schema.table import Table

REQUIRES: tuple[str, ...] = ()
ALONE = "alone."
"""Start of the name of a mean alone."""
OF_ALONE = "@of_alone"
"""End of the name of a ratio, which conf files leave out by the pattern `*@*`."""
GROUP = "alone"
USE = "use_of_alone"
WORK = "work_of_alone"
_USES = ("group.processes.run_seconds", "group.cpu.usage_seconds")
"""Metrics of the processor time of the victim; the first one counts that the machine has."""
_CALLS = ("group.processes.syscr", "group.processes.syscw")
"""Metrics of calls per second that read and write data."""
MIN_CALLS = 50.0
"""Calls per second alone from which on their number tells the work: a service reports a few on its own."""
_WAITING = (".pressure.", ".wait_seconds")
"""Parts of the names of times of waiting: alone they are near 0."""
_LARGEST = 10.0
"""A larger ratio says no more: the metric was near 0 alone."""


def derive(table: Table) -> Table:
    """Append last value / mean alone of every metric that has one, and the victim's use and work now over those alone.

    A ratio to 0 is missing. Use is processor time. An operation makes the same number of calls beside neighbors, so
    calls tell the work of a victim that reads and writes enough, and use that of any other one. Both are at most 1:
    more is no interference.
    """
    frame = table.frame
    values: dict[str, np.ndarray] = {}
    columns = []
    for metric in _metrics_with_mean(table):
        now = to_matrix(frame[metric])[:, -1]
        alone = frame[ALONE + metric].to_numpy(dtype=float)
        name = metric + OF_ALONE
        values[name] = _ratio(now, alone)
        columns.append(feature(name, GROUP, "1", f"last value / mean alone: {name}", 0, _LARGEST))
    uses = [values[name + OF_ALONE] for name in _USES if name + OF_ALONE in values]
    if uses:
        values[USE] = np.minimum(uses[0], 1.0)
        columns.append(feature(USE, GROUP, "1", "processor time of the victim now / alone, at most 1", 0, 1))
        values[WORK] = np.minimum(_work(table, uses[0]), 1.0)
        meaning = "read and write calls of the victim now / alone where it makes enough, else use_of_alone; at most 1"
        columns.append(feature(WORK, GROUP, "1", meaning, 0, 1))
    return append(table, columns, values)


def _metrics_with_mean(table: Table) -> list[str]:
    """Return the metrics of seconds that have a mean alone, times of waiting left out."""
    frame = table.frame
    names = [name.removeprefix(ALONE) for name in map(str, frame) if name.startswith(ALONE)]
    return [name for name in names if not _is_waiting(name) and name in frame and is_sequence(frame[name].dtype)]


def _is_waiting(name: str) -> bool:
    return any(part in name for part in _WAITING)


def _work(table: Table, use: np.ndarray) -> np.ndarray:
    """Return calls now / alone where there are enough alone, else the use. Shapes: (n,) -> (n,)."""
    frame = table.frame
    now = np.zeros(len(frame))
    alone = np.zeros(len(frame))
    for name in _CALLS:
        if name in frame and ALONE + name in frame:
            now += np.nan_to_num(to_matrix(frame[name])[:, -1].astype(float))
            alone += np.nan_to_num(frame[ALONE + name].to_numpy(dtype=float))
    is_enough = alone >= MIN_CALLS
    return np.asarray(np.divide(now, alone, out=use.copy(), where=is_enough))


def _ratio(now: np.ndarray, alone: np.ndarray) -> np.ndarray:
    missing = np.full(len(alone), np.nan)
    ratio = np.divide(now.astype(float), alone, out=missing, where=alone > 0)
    return np.asarray(np.clip(ratio, 0.0, _LARGEST))
