"""What all measurements share: samples until they are steady, random order, unsteady ones again while there is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

MIN_SAMPLES, MAX_SAMPLES = 5, 15
STEADY = 0.03
"""Relative interquartile range under which no further samples are taken."""
HARMLESS_WAIT = 0.02
"""Share of the measured time for which threads may have waited for a core."""


@dataclass(frozen=True)
class Timing:
    """What was measured. Units: seconds; `spread` is the interquartile range over the median.

    `interrupted` says that threads waited for a core that other work had. With two threads that shows as one slow,
    steady time (each product waits for a time slice), which a spread alone does not betray.
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
    """Return how long the threads of this process were ready and had no core so far; 0 where Linux does not tell."""
    total = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread may end meanwhile
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
    """Yield a timing per configuration, then better ones of the least steady configurations until the budget is spent.

    Configurations are measured in random order, so that a drift of the machine's clock does not follow a
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


def steadier(one: T | None, other: T) -> T:
    """Return the timing that was not interrupted, else the one with the smaller spread; on a tie the first."""
    if one is None or (other.interrupted, other.spread) < (one.interrupted, one.spread):
        return other
    return one


def keep_steadiest(
    measured: Iterator[tuple[C, T]], total: int, progress: Callable[[int, int, int], None]
) -> dict[C, T]:
    """Keep the steadiest timing of every configuration; `progress` gets (done, total, repeated) after each."""
    kept: dict[C, T] = {}
    repeated = 0
    for configuration, timing in measured:
        repeated += configuration in kept
        kept[configuration] = steadier(kept.get(configuration), timing)
        progress(len(kept), total, repeated)
    return kept
