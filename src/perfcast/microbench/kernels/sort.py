"""Sorting: random 64-bit whole numbers by numpy's default sort, a fresh copy each time.

numpy sorts with vector instructions where the processor has them. The copy of the unsorted numbers into place is
timed with the sort; it is a few percent of it.
"""

from __future__ import annotations

import numpy as np

from perfcast.microbench.kernels import KIB, MIB, PreparedCall, powers

UNIT = "Melements/s"
MEANING = "sort of random 64-bit whole numbers"
VARIANTS = ("int64",)
SHARED = True


def sizes(largest: int) -> list[int]:
    """Return bytes of the numbers and their copy together."""
    return powers(64 * KIB, min(largest, 64 * MIB), 4)


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Draw the numbers."""
    n = size // 16
    numbers = np.random.default_rng(seed).integers(np.iinfo(variant).max, size=n, dtype=variant)
    kept = np.zeros_like(numbers)

    def call() -> None:
        np.copyto(kept, numbers)
        kept.sort()

    return PreparedCall(call, n / 1e6, lambda: (numbers, kept))
