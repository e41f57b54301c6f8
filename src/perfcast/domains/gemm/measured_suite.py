"""Measurement of the kernels of the suite on this machine, by size and number of threads.

Method: every thread is pinned to one core and uses memory that it touched first; all threads start each sample
together. A sample is the mean of enough calls to last `MIN_SAMPLE_SECONDS`. The result is the median over samples: the
sum of the rates of the threads, or for a latency their mean. Libraries use one thread per measured thread.
`perfcast.domains.gemm.timing` controls order, repetition and budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import psutil  # type: ignore[import-untyped]
import torch
from rich.table import Table

from perfcast.domains.gemm.timing import (
    InterferenceMonitor,
    PinnedThreads,
    Timing,
    measure_steadiest,
    relative_spread,
    until_steady,
)
from perfcast.microbench.kernels import KERNELS, MIB, Kernel, PreparedCall
from perfcast.microbench.machine import available_cpus
from perfcast.utils.errors import unknown_name

MIN_SAMPLE_SECONDS = 0.02
SMALLEST_TOP, LARGEST_TOP = 64 * MIB, 1024 * MIB
MEMORY_SHARE = 0.25
"""Share of the available memory that all threads together can use."""


@dataclass(frozen=True, order=True)
class Case:
    """One configuration. Units: `size` is bytes per thread."""

    kernel: str
    variant: str
    size: int
    threads: int


@dataclass(frozen=True)
class SuiteTiming(Timing):
    """A timing of pinned threads.

    Units: median and minimum are seconds of one call; `work` is that of one call in one thread;
    `waited` and `stolen` are shares of the time of the threads; `other_load` is a number of cores.
    """

    calls: int
    work: float
    pinned: bool
    waited: float | None
    stolen: float | None
    other_load: float | None


def kernel_names() -> list[str]:
    """Return the names of the kernels."""
    return sorted(KERNELS)


def load_kernel(name: str) -> Kernel:
    """Return a kernel. Raises: UserError for an unknown name."""
    if name not in KERNELS:
        raise unknown_name("a kernel", name, kernel_names())
    return KERNELS[name]


def largest_size(l3_kib: float | None, threads: int, available_bytes: int | None) -> int:
    """Return the maximum bytes per thread: four times the L3 caches, limited to a share of the memory."""
    size = 4 * 1024 * int(l3_kib or 0)
    top = min(max(size, SMALLEST_TOP), LARGEST_TOP)
    return top if available_bytes is None else min(top, int(MEMORY_SHARE * available_bytes / threads))


def available_memory() -> int:
    """Return the bytes that can be used without swapping."""
    return int(psutil.virtual_memory().available)


def list_cases(names: Iterable[str], threads: Sequence[int], *, l3_kib: float | None, memory: int | None) -> list[Case]:
    """Return every combination of kernel, variant, number of threads and size that fits into memory."""
    return [
        Case(name, variant, size, count)
        for name in names
        for count in threads
        for variant in load_kernel(name).VARIANTS
        for size in load_kernel(name).sizes(largest_size(l3_kib, count, memory))
    ]


def time_case(case: Case, order: int, round_number: int, *, cpus: Sequence[int], seed: int) -> SuiteTiming:
    """Measure one configuration on the first of `cpus`."""
    kernel = load_kernel(case.kernel)
    works = [0.0] * case.threads

    def prepare(number: int) -> Callable[[], object]:
        torch.set_num_threads(1)  # the setting belongs to this thread
        prepared: PreparedCall = kernel.prepare(case.variant, case.size, seed + number)
        works[number] = prepared.work
        return prepared.call

    used = list(cpus[: case.threads])
    with PinnedThreads(used, prepare) as pinned_threads:
        calls, warmups = warm_up(pinned_threads.run)
        monitor = InterferenceMonitor(pinned_threads.thread_ids, used)
        samples = until_steady(lambda: combine_seconds(pinned_threads.run(calls), kernel.SHARED) / calls)
        interference = monitor.read()
        pinned = pinned_threads.pinned
    return SuiteTiming(
        warmups=warmups,
        repeats=len(samples),
        median=float(np.median(samples)),
        minimum=min(samples),
        spread=relative_spread(samples),
        order=order,
        measured_in=round_number,
        interrupted=interference.harmful,
        calls=calls,
        work=works[0],
        pinned=pinned,
        waited=interference.waited,
        stolen=interference.stolen,
        other_load=interference.other_load,
    )


def warm_up(run: Callable[[int], list[float]]) -> tuple[int, int]:
    """Call until two runs last half a sample each; return (calls per sample, calls so far)."""
    calls, made = 1, 0
    while True:
        # the faster of two runs: the first calls are slow (pages, plans, caches), and other work can interrupt one
        seconds = min(max(run(calls)), max(run(calls)))
        made += 2 * calls
        needed = max(1, math.ceil(calls * MIN_SAMPLE_SECONDS / max(seconds, 1e-7)))
        if seconds >= MIN_SAMPLE_SECONDS / 2:
            return needed, made
        calls = min(10 * calls, max(calls + 1, needed))


def combine_seconds(seconds: Sequence[float], shared: bool) -> float:
    """Return one time for all threads: the harmonic mean of shared kernels, the mean of the others."""
    return float(len(seconds) / np.sum(1 / np.asarray(seconds))) if shared else float(np.mean(seconds))


def measure(
    configurations: Sequence[Case],
    *,
    budget_seconds: float,
    seed: int,
    progress: Callable[[int, int, int], None] = lambda done, total, again: None,
) -> dict[Case, SuiteTiming]:
    """Measure and keep the steadiest timing of every configuration; `progress` gets (done, total, repeated)."""
    cpus = available_cpus()

    def time_one(case: Case, order: int, round_number: int) -> SuiteTiming:
        return time_case(case, order, round_number, cpus=cpus, seed=seed)

    return measure_steadiest(configurations, time_one, budget_seconds=budget_seconds, seed=seed, progress=progress)


def as_frame(timings: dict[Case, SuiteTiming]) -> pd.DataFrame:
    """Return the measured table, ordered by the configuration; interrupted ones are marked.

    Units: bytes per thread; seconds of one call; the rate in the unit of its row.
    """
    rows: list[dict[str, Any]] = []
    for case in sorted(timings):
        timing, kernel = timings[case], load_kernel(case.kernel)
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
                "combined": "sum" if kernel.SHARED else "mean",
                "seconds_median": _digits(timing.median),
                "seconds_min": _digits(timing.minimum),
                "seconds_spread": _digits(timing.spread, 4),
                "rate": _digits(compute_rate(timing.work, timing.median, case.threads, kernel.SHARED)),
                "unit": kernel.UNIT,
                "waited_share": _digits(timing.waited, 4),
                "stolen_share": _digits(timing.stolen, 4),
                "other_load": _digits(timing.other_load, 3),
                "interrupted": int(timing.interrupted),
                "order": timing.order,
                "pass": timing.measured_in,
            }
        )
    return pd.DataFrame(rows)


def compute_rate(work: float, seconds: float, threads: int, shared: bool) -> float:
    """Return the rate in the unit of the kernel; that of all threads together if it is shared."""
    return work / seconds * (threads if shared else 1)


def _digits(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


_INTERRUPTED = "!"
_MAX_OTHER_LOAD = 0.1
"""Cores that other processes can use before a note warns of them."""


def create_table(frame: pd.DataFrame, counts: Sequence[int]) -> Table:
    """Return the results of one kernel: a row per variant and size, a column per number of threads."""
    kernel = load_kernel(str(frame["kernel"].iloc[0]))
    unit = kernel.INVERSE or kernel.UNIT
    table = Table()
    table.add_column("variant")
    table.add_column("bytes per thread", justify="right")
    for count in counts:
        table.add_column(f"{count} thread{'s' if count > 1 else ''}\n{unit}", justify="right")
    table.add_column("spread\n%", justify="right")
    for (variant, size), rows in frame.groupby(["variant", "bytes"]):
        by_count = rows.set_index("threads")
        cells = [
            _format_cell(by_count.loc[[count]].iloc[0], kernel) if count in by_count.index else "- " for count in counts
        ]
        spread = f"{100 * rows['seconds_spread'].max():.1f}"
        table.add_row(str(variant), format_bytes(int(str(size))), *cells, spread)
    return table


def _format_cell(row: pd.Series, kernel: Kernel) -> str:
    value = 1000 / row["rate"] if kernel.INVERSE else row["rate"]
    return f"{value:.4g}{_INTERRUPTED if row['interrupted'] else ' '}"


def format_bytes(size: int) -> str:
    """Return e.g. '64 KiB'."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def list_notes(frame: pd.DataFrame, planned: int) -> list[str]:
    """Return notes on interference, missing configurations and the spread."""
    notes = []
    interrupted = int(frame["interrupted"].sum())
    if interrupted:
        notes.append(
            f"{_INTERRUPTED} other work interrupted every measurement of {interrupted} of {len(frame)} configurations; "
            "the dataset excludes them"
        )
    load = frame["other_load"].median()
    if load > _MAX_OTHER_LOAD:
        notes.append(
            f"other work kept {load:.1f} cores busy and shared caches, memory and clock; measure on an idle machine"
        )
    if frame[["waited_share", "stolen_share"]].isna().any(axis=None):
        notes.append("this system does not report whether other work interrupted the measurements")
    if not frame["pinned"].all():
        notes.append("this system does not allow threads to be pinned to cores (column pinned)")
    if planned > len(frame):
        notes.append(f"{planned - len(frame)} configurations were not reached")
    spread = 100 * frame["seconds_spread"].median()
    notes.append(f"measured {len(frame)} configurations; median spread (interquartile range / median): {spread:.1f} %")
    return notes
