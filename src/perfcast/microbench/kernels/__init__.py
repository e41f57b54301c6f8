"""Kernels of `perfcast measure suite`, one module each.

A kernel is a module of this package with

    UNIT: str                     unit of the rate, higher is better
    MEANING: str                  short description
    VARIANTS: tuple[str, ...]     data types or patterns
    SHARED: bool                  True: the rates of the threads are added; False: they are averaged (latency)
    def sizes(largest: int) -> list[int]                              bytes per thread, at most `largest`
    def prepare(variant: str, size: int, seed: int) -> PreparedCall       in the measured thread

and optionally `INVERSE: str`, the unit of 1000 / rate (ns per access), and `READING: str`, a remark for the reader.
The call must run native code that releases Python's lock, so that threads do not wait for each other. It should last
100 us or more, so that the overhead of the call is small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class PreparedCall:
    """A prepared call.

    Units: `work` of one call in the numerator of the kernel's unit (GB, GFLOP, Melements, ...), so that work / seconds
    is the rate. `result` returns the input and output arrays of the last call, for tests.
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
