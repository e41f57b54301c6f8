"""Interference of other work: waits for a core, time stolen by the hypervisor, and load on other cores.

Source: Linux, Documentation/scheduler/sched-stats (schedstat of a task), and the CPU times of psutil. Values that the
system does not have are None.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from perfcast.microbench.timing import HARMLESS_WAIT

_TASK = "/proc/self/task/{}/schedstat"


@dataclass(frozen=True)
class Interference:
    """Interference during a measurement of threads.

    Units: shares of the total time of the threads; `other_load` is the mean number of cores that other processes used
    anywhere on the machine, which affects shared caches, memory and clock.
    """

    waited: float | None
    stolen: float | None
    other_load: float | None

    @property
    def harmful(self) -> bool:
        """Whether threads waited for a core, or lost it to the hypervisor, for longer than HARMLESS_WAIT."""
        return any(share is not None and share > HARMLESS_WAIT for share in (self.waited, self.stolen))


class InterferenceMonitor:
    """Counters from construction until `read`."""

    def __init__(self, thread_ids: Sequence[int], cpus: Sequence[int]) -> None:
        self._ids, self._cpus = list(thread_ids), list(cpus)
        self._before = self._counts()

    def read(self) -> Interference:
        """Return the interference since construction."""
        now = self._counts()
        wall, waited, stolen, busy, own = (
            None if a is None or b is None else b - a for a, b in zip(self._before, now, strict=True)
        )
        if not wall:
            return Interference(None, None, None)
        threads_time = wall * len(self._ids)
        tick = 1 / os.sysconf("SC_CLK_TCK")
        return Interference(
            waited=None if waited is None else waited / threads_time,
            # the counter has a resolution of one tick, which can have begun earlier
            stolen=None if stolen is None else max(0.0, stolen - tick) / threads_time,
            other_load=None if busy is None or own is None else max(0.0, busy - own) / wall,
        )

    def _counts(self) -> tuple[float | None, ...]:
        stolen, busy = machine_seconds(self._cpus)
        return time.perf_counter(), waited_by(self._ids), stolen, busy, time.process_time()


def waited_by(thread_ids: Sequence[int]) -> float | None:
    """Return the seconds that ready threads have waited for a core so far."""
    total = 0
    for number in thread_ids:
        try:
            total += int(Path(_TASK.format(number)).read_text().split()[1])
        except (OSError, IndexError, ValueError):
            return None
    return total / 1e9


def machine_seconds(cpus: Sequence[int]) -> tuple[float | None, float | None]:
    """Return the seconds stolen from the given CPUs, and the busy seconds of all CPUs, since boot."""
    try:
        times = psutil.cpu_times(percpu=True)
    except (OSError, RuntimeError):
        times = []
    if not cpus or max(cpus) >= len(times) or not hasattr(times[0], "steal"):
        return None, None
    busy = sum(time.user + time.nice + time.system + time.irq + time.softirq for time in times)
    return sum(times[cpu].steal for cpu in cpus), busy
