"""Branches: one decision per element, with a pattern that can be foreseen and one that cannot.

numpy's `putmask` decides for each element whether to copy it. `regular` repeats no, no, yes, yes; `random` holds as
many yes and no in random order. Work and memory are the same, so the difference of the two times is what wrong guesses
of the branch predictor cost: it guesses half of the random decisions wrongly. Where both are equally fast, the compiler
has made this loop free of branches, and the kernel says nothing of the predictor. Short patterns are learned by heart:
the sizes begin where a lap has tens of thousands of decisions.
"""

from __future__ import annotations

import numpy as np

from perfcast.microbench.kernels import MIB, PreparedCall, powers

UNIT = "Mbranches/s"
MEANING = "copy where a mask says so"
READING = "what random takes longer than regular is the cost of wrong guesses"
VARIANTS = ("regular", "random")
SHARED = True
_BYTES = 17
"""One of the mask, eight of the source, eight of the target."""


def sizes(largest: int) -> list[int]:
    """Return bytes of mask, source and target together."""
    return powers(1 * MIB, min(largest, 64 * MIB), 4)


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Write the mask."""
    n = size // (4 * _BYTES) * 4
    mask = np.resize([False, False, True, True], n)
    if variant == "random":
        np.random.default_rng(seed).shuffle(mask)
    source, target = np.arange(1, n + 1), np.zeros(n, np.int64)
    return PreparedCall(lambda: np.putmask(target, mask, source), n / 1e6, lambda: (mask, source, target))
