"""Repetition of measurements until they are steady."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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


def measure_steadiest(
    configurations: Sequence[C],
    time_one: Callable[[C, int, int], Timing],
    *,
    budget_seconds: float,
    seed: int,
    progress: Callable[[int, int, int], None],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[C, Timing]:
    """Measure every configuration, then the least steady ones again until the budget is spent.

    Configurations are measured in random order, so that a drift of the clock does not correlate with a characteristic.
    SIGINT ends the measurement, and what was measured until then stays.

    Args:
        time_one: Gets a configuration, its place in the sequence, and the number of the round.
        progress: Gets the measured configurations, all configurations, and the repeats.

    Returns:
        The steadiest timing of every configuration.
    """
    random = np.random.default_rng(seed)
    end = clock() + budget_seconds
    threads = torch.get_num_threads()
    pending = [configurations[i] for i in random.permutation(len(configurations))]
    best: dict[C, Timing] = {}
    order = 0
    round_number = 0
    try:
        while pending:
            for configuration in pending:
                if clock() > end:
                    return best
                timing = time_one(configuration, order, round_number)
                best[configuration] = choose_steadier(best.get(configuration), timing)
                order += 1
                progress(len(best), len(configurations), order - len(best))
            round_number += 1
            unsteady = [c for c, timing in best.items() if timing.interrupted or timing.spread >= STEADY]
            unsteady.sort(key=lambda c: (best[c].interrupted, best[c].spread), reverse=True)
            pending = unsteady[: max(1, len(best) // 10)]
    except KeyboardInterrupt:
        if not best:
            raise
    finally:
        torch.set_num_threads(threads)
    return best


def choose_steadier(first: Timing | None, second: Timing) -> Timing:
    """Return the timing that was not interrupted, else the one with the smaller spread; on a tie the first."""
    if first is None or (second.interrupted, second.spread) < (first.interrupted, first.spread):
        return second
    return first


def thread_counts(maximum: int) -> list[int]:
    """Return the powers of two up to `maximum`, and `maximum`."""
    return sorted({*(2**i for i in range(maximum.bit_length()) if 2**i <= maximum), maximum})
