"""Did other work disturb a measurement: waiting for a core, time stolen by the hypervisor, load on the other cores.

Source: Linux, Documentation/scheduler/sched-stats (schedstat of a task) and proc(5) (/proc/stat). Where the system does
not tell, the answers are None.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfcast.measure.timing import HARMLESS_WAIT

_TASK = "/proc/self/task/{}/schedstat"
_STAT = "/proc/stat"


@dataclass(frozen=True)
class Interference:
    """What happened while some threads were measured.

    Units: shares of the threads' time together; `other_load` is the number of cores, on average, that other processes
    kept busy anywhere on the machine: it disturbs no core, but shared caches, memory and clock.
    """

    waited: float | None
    stolen: float | None
    other_load: float | None

    @property
    def harmful(self) -> bool:
        """True when threads waited for a core, or the hypervisor took it, for longer than is harmless."""
        return any(share is not None and share > HARMLESS_WAIT for share in (self.waited, self.stolen))


class Watch:
    """Counts from its making until `read`."""

    def __init__(self, thread_ids: Sequence[int], cpus: Sequence[int]) -> None:
        self._ids, self._cpus = list(thread_ids), list(cpus)
        self._before = self._counts()

    def read(self) -> Interference:
        """Return what happened since."""
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
            # the counter jumps by whole ticks; one of them may have begun before
            stolen=None if stolen is None else max(0.0, stolen - tick) / threads_time,
            other_load=None if busy is None or own is None else max(0.0, busy - own) / wall,
        )

    def _counts(self) -> tuple[float | None, ...]:
        stolen, busy = machine_seconds(self._cpus)
        return time.perf_counter(), waited_by(self._ids), stolen, busy, time.process_time()


def waited_by(thread_ids: Sequence[int]) -> float | None:
    """Return how many seconds the named threads were ready and had no core so far."""
    total = 0
    for number in thread_ids:
        try:
            total += int(Path(_TASK.format(number)).read_text().split()[1])
        except (OSError, IndexError, ValueError):
            return None
    return total / 1e9


def machine_seconds(cpus: Sequence[int], text: str | None = None) -> tuple[float | None, float | None]:
    """Return the seconds stolen from the given processors, and those that all processors were busy, since boot."""
    if text is None:
        text = ""
        with suppress(OSError):
            text = Path(_STAT).read_text()
    stolen = busy = 0
    found = 0
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if not name[3:].isdigit() or not name.startswith("cpu"):
            continue
        user, nice, system, _, _, irq, softirq, steal = (int(count) for count in rest.split()[:8])
        busy += user + nice + system + irq + softirq
        if int(name[3:]) in cpus:
            stolen += steal
            found += 1
    if found < len(cpus) or not found:
        return None, None
    tick = os.sysconf("SC_CLK_TCK")
    return stolen / tick, busy / tick
