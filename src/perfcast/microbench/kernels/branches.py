"""Branches: one decision per element, with a predictable and with a random pattern.

numpy's `putmask` decides for each element whether to copy it. `regular` repeats no, no, yes, yes; `random` has the same
elements in random order. Work and memory are equal, so that the difference of the times is the cost of mispredicted
branches, half of the random ones. If both are equally fast, the compiler has made the loop branch-free, and the kernel
does not measure the branch predictor. A predictor can learn short patterns: the smallest set has tens of thousands of
decisions.
"""

from __future__ import annotations

import numpy as np

from perfcast.microbench.kernels import MIB, PreparedCall, powers

UNIT = "Mbranches/s"
MEANING = "conditional copy by a mask"
READING = "the extra time of random over regular is the cost of mispredicted branches"
VARIANTS = ("regular", "random")
SHARED = True
_BYTES = 17
"""Bytes per element: one of the mask, eight of the source, eight of the target."""


def sizes(largest: int) -> list[int]:
    """Return bytes of mask, source and target together."""
    return powers(1 * MIB, min(largest, 64 * MIB), 4)


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Create mask, source and target."""
    n = size // (4 * _BYTES) * 4
    mask = np.resize([False, False, True, True], n)
    if variant == "random":
        np.random.default_rng(seed).shuffle(mask)
    source, target = np.arange(1, n + 1), np.zeros(n, np.int64)
    return PreparedCall(lambda: np.putmask(target, mask, source), n / 1e6, lambda: (mask, source, target))
