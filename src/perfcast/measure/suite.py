"""Measure the kernels of the suite on this machine, by size and number of threads.

Method: every thread is pinned to a core of its own and works on memory of its own, which it touched first; all start
each sample together. A sample is the mean of enough calls to last `MIN_SAMPLE_SECONDS`, and the median over samples is
the result: the sum of the threads' rates, or for a latency the mean over threads. Libraries may use one thread inside.
Order, repetition and budget are those of `perfcast.measure.timing`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import torch

from perfcast import plugins
from perfcast.measure.crew import Crew, available_cpus
from perfcast.measure.interference import Watch
from perfcast.measure.kernels.base import MIB, Prepared
from perfcast.measure.timing import Timing, in_rounds, keep_steadiest, relative_spread, until_steady

PACKAGE = "measure.kernels"
MIN_SAMPLE_SECONDS = 0.02
SMALLEST_TOP, LARGEST_TOP = 64 * MIB, 1024 * MIB
MEMORY_SHARE = 0.25
"""Of the memory that is available, all threads together."""


@dataclass(frozen=True, order=True)
class Case:
    """One configuration. Units: `size` is bytes per thread."""

    kernel: str
    variant: str
    size: int
    threads: int


@dataclass(frozen=True)
class Measured(Timing):
    """A timing with what belongs to a crew of threads.

    Units: median and minimum are seconds of one call, which does `work` in each thread; `waited` and `stolen` are
    shares of the threads' time; `other_load` is a number of cores.
    """

    calls: int
    work: float
    pinned: bool
    waited: float | None
    stolen: float | None
    other_load: float | None


def kernel_names() -> list[str]:
    """List the kernels there are."""
    return plugins.names(PACKAGE)


def kernel(name: str) -> ModuleType:
    """Import a kernel. Raises: UserError when there is none of that name."""
    return plugins.load(PACKAGE, name)


def thread_counts(most: int) -> list[int]:
    """Return the powers of two up to `most`, and `most`."""
    return sorted({*(2**i for i in range(most.bit_length()) if 2**i <= most), most})


def largest_size(l3_kib: float | None, threads: int, available_bytes: int | None) -> int:
    """Return the most bytes per thread: four times the last-level caches, as far as a share of the memory allows."""
    wanted = 4 * 1024 * int(l3_kib or 0)
    top = min(max(wanted, SMALLEST_TOP), LARGEST_TOP)
    return top if available_bytes is None else min(top, int(MEMORY_SHARE * available_bytes / threads))


def available_memory() -> int | None:
    """Return the bytes that can be used without swapping; None where Linux does not tell."""
    path = Path("/proc/meminfo")
    match = re.search(r"MemAvailable:\s+(\d+) kB", path.read_text()) if path.exists() else None
    return int(match[1]) * 1024 if match else None


def cases(kernels: Iterable[str], threads: Sequence[int], *, l3_kib: float | None, memory: int | None) -> list[Case]:
    """List what is measured: every kernel, variant, number of threads and size that fits into memory."""
    return [
        Case(name, variant, size, count)
        for name in kernels
        for count in threads
        for variant in kernel(name).VARIANTS
        for size in kernel(name).sizes(largest_size(l3_kib, count, memory))
    ]


def time_case(case: Case, order: int, round_number: int, *, cpus: Sequence[int], seed: int) -> Measured:
    """Measure one configuration on the first of `cpus`."""
    module = kernel(case.kernel)
    works = [0.0] * case.threads

    def prepare(number: int) -> Callable[[], object]:
        torch.set_num_threads(1)  # of this thread: each has a setting of its own
        prepared: Prepared = module.prepare(case.variant, case.size, seed + number)
        works[number] = prepared.work
        return prepared.call

    used = list(cpus[: case.threads])
    with Crew(used, prepare) as crew:
        calls, warmups = warm_up(crew.run)
        watch = Watch(crew.thread_ids, used)
        samples = until_steady(lambda: combined(crew.run(calls), module.SHARED) / calls)
        disturbed = watch.read()
        pinned = crew.pinned
    return Measured(
        warmups=warmups,
        repeats=len(samples),
        median=float(np.median(samples)),
        minimum=min(samples),
        spread=relative_spread(samples),
        order=order,
        measured_in=round_number,
        interrupted=disturbed.harmful,
        calls=calls,
        work=works[0],
        pinned=pinned,
        waited=disturbed.waited,
        stolen=disturbed.stolen,
        other_load=disturbed.other_load,
    )


def warm_up(run: Callable[[int], list[float]]) -> tuple[int, int]:
    """Call until two runs last half a sample each; return (calls of one sample, calls made so far)."""
    calls, made = 1, 0
    while True:
        # the faster of two: the first calls are slow (pages, plans, caches), and other work may interrupt one
        seconds = min(max(run(calls)), max(run(calls)))
        made += 2 * calls
        wanted = max(1, math.ceil(calls * MIN_SAMPLE_SECONDS / max(seconds, 1e-7)))
        if seconds >= MIN_SAMPLE_SECONDS / 2:
            return wanted, made
        calls = min(10 * calls, max(calls + 1, wanted))


def combined(seconds: Sequence[float], shared: bool) -> float:
    """Return one time of all threads: the harmonic mean where rates add up, the mean where each has its own."""
    return float(len(seconds) / np.sum(1 / np.asarray(seconds))) if shared else float(np.mean(seconds))


def measure(
    configurations: Sequence[Case],
    *,
    budget_seconds: float,
    seed: int,
    progress: Callable[[int, int, int], None] = lambda done, total, again: None,
) -> dict[Case, Measured]:
    """Measure and keep the steadiest timing of every configuration; `progress` gets (done, total, repeated).

    The threads of torch are restored at the end.
    """
    before = torch.get_num_threads()
    cpus = available_cpus()

    def time_one(case: Case, order: int, round_number: int) -> Measured:
        return time_case(case, order, round_number, cpus=cpus, seed=seed)

    measured: Iterator[tuple[Case, Measured]] = in_rounds(
        configurations, time_one, budget_seconds=budget_seconds, seed=seed
    )
    try:
        return keep_steadiest(measured, len(configurations), progress)
    finally:
        torch.set_num_threads(before)


def as_frame(timings: dict[Case, Measured]) -> pd.DataFrame:
    """Return the measured table, ordered by the configuration; interrupted ones are there and marked.

    Units: bytes per thread; seconds of one call; the rate in the unit that its row names.
    """
    rows: list[dict[str, Any]] = []
    for case in sorted(timings):
        timing, module = timings[case], kernel(case.kernel)
        rows.append(
            {
                "kernel": case.kernel,
                "variant": case.variant,
                "bytes": case.size,
                "threads": case.threads,
                "pinned": int(timing.pinned),
                "warmups": timing.warmups,
                "repeats": timing.repeats,
                "calls": timing.calls,
                "work": _digits(timing.work, 9),
                "combined": "sum" if module.SHARED else "mean",
                "seconds_median": _digits(timing.median),
                "seconds_min": _digits(timing.minimum),
                "seconds_spread": _digits(timing.spread, 4),
                "rate": _digits(rate(timing.work, timing.median, case.threads, module.SHARED)),
                "unit": module.UNIT,
                "waited_share": _digits(timing.waited, 4),
                "stolen_share": _digits(timing.stolen, 4),
                "other_load": _digits(timing.other_load, 3),
                "interrupted": int(timing.interrupted),
                "order": timing.order,
                "pass": timing.measured_in,
            }
        )
    return pd.DataFrame(rows)


def rate(work: float, seconds: float, threads: int, shared: bool) -> float:
    """Return the rate in the kernel's unit, of all threads together where it is shared."""
    return work / seconds * (threads if shared else 1)


def _digits(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")
