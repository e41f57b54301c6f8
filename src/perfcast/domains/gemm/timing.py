"""Repetition of measurements until they are steady, pinned threads, and the interference of other work with them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np
import psutil  # type: ignore[import-untyped]
import torch

MIN_SAMPLES, MAX_SAMPLES = 5, 15
STEADY = 0.03
"""Relative interquartile range of a steady measurement."""
HARMLESS_WAIT = 0.02
"""Share of the measured time that threads can wait for a core without harm."""


@dataclass(frozen=True)
class Timing:
    """Result of a measurement. Units: seconds; `spread` is the interquartile range over the median.

    `interrupted`: threads waited for a core that other work used. The spread alone does not show it: two threads on
    one core give slow but steady times.
    """

    warmups: int
    repeats: int
    median: float
    minimum: float
    spread: float
    order: int
    measured_in: int
    interrupted: bool


C = TypeVar("C")
T = TypeVar("T", bound=Timing)


def waited_seconds() -> float:
    """Return the time that ready threads of this process waited for a core so far; 0 on other systems than Linux."""
    total = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread can end meanwhile
            total += int(path.read_text().split()[1])
    return total / 1e9


def relative_spread(samples: Sequence[float]) -> float:
    """Return the interquartile range over the median."""
    low, middle, high = np.quantile(samples, [0.25, 0.5, 0.75])
    return float((high - low) / middle)


def until_steady(sample: Callable[[], float]) -> list[float]:
    """Take `MIN_SAMPLES` samples, and more until they are steady or `MAX_SAMPLES` are taken."""
    samples: list[float] = []
    while len(samples) < MAX_SAMPLES:
        samples.append(sample())
        if len(samples) >= MIN_SAMPLES and relative_spread(samples) < STEADY:
            break
    return samples


def in_rounds(
    configurations: Sequence[C],
    time_one: Callable[[C, int, int], T],
    *,
    budget_seconds: float,
    seed: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[C, T]]:
    """Yield a timing per configuration, then repeats of the least steady ones until the budget is spent.

    Configurations are measured in random order, so that a drift of the clock does not correlate with a
    characteristic. `time_one` gets a configuration, its place in the sequence, and the number of the round. The
    consumer keeps the steadier of two timings of one configuration.
    """
    random = np.random.default_rng(seed)
    end = clock() + budget_seconds
    order = 0
    best: dict[C, T] = {}
    pending = [configurations[i] for i in random.permutation(len(configurations))]
    round_number = 0
    while pending:
        for configuration in pending:
            if clock() > end:
                return
            timing = time_one(configuration, order, round_number)
            order += 1
            best[configuration] = steadier(best.get(configuration), timing)
            yield configuration, timing
        round_number += 1
        unsteady = [c for c, timing in best.items() if timing.interrupted or timing.spread >= STEADY]
        unsteady.sort(key=lambda c: (best[c].interrupted, best[c].spread), reverse=True)
        pending = unsteady[: max(1, len(best) // 10)]


def steadier(first: T | None, second: T) -> T:
    """Return the timing that was not interrupted, else the one with the smaller spread; on a tie the first."""
    if first is None or (second.interrupted, second.spread) < (first.interrupted, first.spread):
        return second
    return first


def keep_steadiest(
    measured: Iterator[tuple[C, T]], total: int, progress: Callable[[int, int, int], None]
) -> dict[C, T]:
    """Keep the steadiest timing of every configuration; `progress` gets (done, total, repeated) after each.

    SIGINT ends the measurement, and what was measured until then stays.
    """
    best: dict[C, T] = {}
    repeated = 0
    try:
        for configuration, timing in measured:
            repeated += configuration in best
            best[configuration] = steadier(best.get(configuration), timing)
            progress(len(best), total, repeated)
    except KeyboardInterrupt:
        if not best:
            raise
    return best


def measure_steadiest(
    configurations: Sequence[C],
    time_one: Callable[[C, int, int], T],
    *,
    budget_seconds: float,
    seed: int,
    progress: Callable[[int, int, int], None] = lambda done, total, repeated: None,
) -> dict[C, T]:
    """Measure in rounds, keep the steadiest timing of every configuration, and restore the threads of torch."""
    threads = torch.get_num_threads()
    try:
        measured = in_rounds(configurations, time_one, budget_seconds=budget_seconds, seed=seed)
        return keep_steadiest(measured, len(configurations), progress)
    finally:
        torch.set_num_threads(threads)


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
        """Return whether threads waited for a core, or lost it to the hypervisor, for longer than HARMLESS_WAIT."""
        return any(share is not None and share > HARMLESS_WAIT for share in (self.waited, self.stolen))


class InterferenceMonitor:
    """Counters from construction until `read`."""

    def __init__(self, thread_ids: Sequence[int], cpus: Sequence[int]) -> None:
        self._ids, self._cpus = list(thread_ids), list(cpus)
        self._before = self._counts()

    def read(self) -> Interference:
        """Return the interference since construction."""
        now = self._counts()
        wall, waited, stolen, busy, process = (
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
            other_load=None if busy is None or process is None else max(0.0, busy - process) / wall,
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
