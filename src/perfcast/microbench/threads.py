"""Threads that are pinned to one core each and start every sample together."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def available_cpus() -> list[int]:
    """Return the logical CPUs of this process: one of every core first, then the others of each core."""
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1))
    cpus = sorted(os.sched_getaffinity(0))
    seen: dict[str, int] = {}
    ranks = {}
    for cpu in cpus:
        core = str(cpu)
        with suppress(OSError):
            core = Path(_SIBLINGS.format(cpu)).read_text().strip()
        ranks[cpu] = seen[core] = seen.get(core, -1) + 1
    return sorted(cpus, key=lambda cpu: (ranks[cpu], cpu))


def thread_counts(maximum: int) -> list[int]:
    """Return the powers of two up to `maximum`, and `maximum`."""
    return sorted({*(2**i for i in range(maximum.bit_length()) if 2**i <= maximum), maximum})


class PinnedThreads:
    """Context of threads that prepare a call each and repeat it on command.

    Every pinned thread calls `prepare` once with its number, so that it touches its memory first and the system places
    the memory near its core.

    Raises: the exception of `prepare` or of a call, in the thread that uses the context.
    """

    def __init__(self, cpus: list[int], prepare: Callable[[int], Callable[[], object]]) -> None:
        self._prepare = prepare
        self._seconds = [0.0] * len(cpus)
        self._calls = 0
        self._errors: list[BaseException] = []
        self._start, self._end = (threading.Barrier(len(cpus) + 1) for _ in range(2))
        self._threads = [threading.Thread(target=self._work, args=pair, daemon=True) for pair in enumerate(cpus)]
        self.pinned = True
        """False when the system does not allow threads to be pinned."""

    def __enter__(self) -> PinnedThreads:
        for thread in self._threads:
            thread.start()
        self._wait(self._end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._calls = 0
            self._wait(self._start)
        else:
            self._start.abort()
            self._end.abort()
        for thread in self._threads:
            thread.join()

    @property
    def thread_ids(self) -> list[int]:
        """Thread ids of the system."""
        return [thread.native_id for thread in self._threads if thread.native_id is not None]

    def run(self, calls: int) -> list[float]:
        """Run a number of calls in every thread at the same time; return the seconds of each thread."""
        self._calls = calls
        self._wait(self._start)
        self._wait(self._end)
        return list(self._seconds)

    def _wait(self, barrier: threading.Barrier) -> None:
        try:
            barrier.wait()
        except threading.BrokenBarrierError:
            if self._errors:
                raise self._errors[0] from None
            raise

    def _work(self, number: int, cpu: int) -> None:
        try:
            self._pin(cpu)
            call = self._prepare(number)
            self._end.wait()
            while True:
                self._start.wait()
                if not self._calls:
                    return
                begin = time.perf_counter()
                for _ in range(self._calls):
                    call()
                self._seconds[number] = time.perf_counter() - begin
                self._end.wait()
        except threading.BrokenBarrierError:
            return
        except BaseException as error:
            self._errors.append(error)
            self._start.abort()
            self._end.abort()

    def _pin(self, cpu: int) -> None:
        try:
            os.sched_setaffinity(0, {cpu})  # 0 is the calling thread alone
        except (AttributeError, OSError):
            self.pinned = False
