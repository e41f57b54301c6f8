"""Repetition of measurements until they are steady."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

MIN_SAMPLES = 5
MAX_SAMPLES = 15
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
    if first is None or (second.interrupted, second.spread) < (
        first.interrupted,
        first.spread,
    ):
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


def thread_counts(maximum: int) -> list[int]:
    """Return the powers of two up to `maximum`, and `maximum`."""
    return sorted({*(2**i for i in range(maximum.bit_length()) if 2**i <= maximum), maximum})
