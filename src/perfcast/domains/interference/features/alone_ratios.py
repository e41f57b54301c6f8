"""Ratios of the victim's metrics now to those alone, for tenants that the host has seen alone."""

from __future__ import annotations

import numpy as np

from perfcast.features.feature_math import append, feature
from perfcast.schema.sequences import is_sequence, to_matrix
from perfcast.schema.table import Table

REQUIRES: tuple[str, ...] = ()
ALONE, OF_ALONE, GROUP = "alone.", "@of_alone", "alone"
"""Start of a column's name: mean alone; end of a ratio's name, which conf files leave out by the pattern `*@*`."""
USE, WORK = "use_of_alone", "work_of_alone"
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
    names = [name.removeprefix(ALONE) for name in map(str, frame) if name.startswith(ALONE) and not _is_waiting(name)]
    metrics = [name for name in names if name in frame and is_sequence(frame[name].dtype)]
    values = {
        metric + OF_ALONE: _ratio(to_matrix(frame[metric])[:, -1], frame[ALONE + metric].to_numpy(dtype=float))
        for metric in metrics
    }
    columns = [feature(name, GROUP, "1", f"last value / mean alone: {name}", 0, _LARGEST) for name in values]
    use = next((values[name + OF_ALONE] for name in _USES if name + OF_ALONE in values), None)
    if use is not None:
        values[USE] = np.minimum(use, 1.0)
        values[WORK] = np.minimum(_work(table, use), 1.0)
        meaning = "read and write calls of the victim now / alone where it makes enough, else use_of_alone; at most 1"
        columns.append(feature(USE, GROUP, "1", "processor time of the victim now / alone, at most 1", 0, 1))
        columns.append(feature(WORK, GROUP, "1", meaning, 0, 1))
    return append(table, columns, values)


def _is_waiting(name: str) -> bool:
    return any(part in name for part in _WAITING)


def _work(table: Table, use: np.ndarray) -> np.ndarray:
    """Return calls now / alone where there are enough alone, else the use. Shapes: (n,) -> (n,)."""
    frame = table.frame
    known = [name for name in _CALLS if name in frame and ALONE + name in frame]
    now = np.sum([np.nan_to_num(to_matrix(frame[name])[:, -1].astype(float)) for name in known], axis=0)
    alone = np.sum([np.nan_to_num(frame[ALONE + name].to_numpy(dtype=float)) for name in known], axis=0)
    enough = np.broadcast_to(alone >= MIN_CALLS, use.shape)
    return np.where(enough, np.divide(now, alone, out=use.copy(), where=enough), use)


def _ratio(now: np.ndarray, alone: np.ndarray) -> np.ndarray:
    ratio = np.divide(now.astype(float), alone, out=np.full(len(alone), np.nan), where=alone > 0)
    return np.asarray(np.clip(ratio, 0.0, _LARGEST))
