"""Sorting: random 64-bit integers by numpy's default sort, on a fresh copy per call.

numpy sorts with vector instructions if the processor has them. The time includes the copy, a few percent of the sort.
"""

from __future__ import annotations

import numpy as np

from perfcast.microbench.kernels import KIB, MIB, PreparedCall, powers

UNIT = "Melements/s"
MEANING = "sort of random 64-bit integers"
VARIANTS = ("int64",)
SHARED = True


def sizes(largest: int) -> list[int]:
    """Return the bytes of the numbers and their copy together."""
    return powers(64 * KIB, min(largest, 64 * MIB), 4)


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Draw random numbers."""
    n = size // 16
    numbers = np.random.default_rng(seed).integers(np.iinfo(variant).max, size=n, dtype=variant)
    copy = np.zeros_like(numbers)

    def call() -> None:
        np.copyto(copy, numbers)
        copy.sort()

    return PreparedCall(call, n / 1e6, lambda: (numbers, copy))
