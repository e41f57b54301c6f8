"""What every kernel is: its unit, its sizes, and a call whose time is taken.

A kernel is a public module of this package with

    UNIT: str                     unit of the rate, higher is better
    MEANING: str                  what is done, in a few words
    VARIANTS: tuple[str, ...]     what it is done on or with
    SHARED: bool                  True: the rates of the threads add up; False: a thread's own rate is told (latency)
    def sizes(largest: int) -> list[int]                              bytes per thread, at most `largest`
    def prepare(variant: str, size: int, seed: int) -> Prepared       in the thread that will be measured

and, where it helps to read the results, `INVERSE: str`, the unit of 1000 / rate (ns per access), and `READING: str`,
what must be known. The call must spend its time in native code that releases Python's lock, or threads would wait for
each other, and should last 100 us or more: below, the cost of making it is measured too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class Prepared:
    """A call that is ready to be timed.

    Units: `work` is what one call does, in the numerator of the kernel's unit (GB, GFLOP, Melements, ...), so that
    work / seconds is the rate. `result` returns arrays (what was given, what the last call
    computed), for tests.
    """

    call: Callable[[], object]
    work: float
    result: Callable[[], tuple[Any, ...]]


def powers(smallest: int, largest: int, step: int = 2) -> list[int]:
    """Return smallest, smallest * step, ... up to `largest`."""
    sizes = []
    while smallest <= largest:
        sizes.append(smallest)
        smallest *= step
    return sizes
