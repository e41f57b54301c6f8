"""Memory bandwidth: the triad a <- a + s c over two vectors of float64.

Each element is two loads and one store, 24 bytes as STREAM counts them (McCalpin 1995). STREAM's own triad writes to a
third vector, whose lines most machines read before they write them, uncounted; done in place, what is counted is what
moves. It is torch's loop that is measured, not the most that hand-written code could get.

One native call passes over the vectors often enough to be much longer than the cost of calling it: `index_add_` adds
the same row c (a view that repeats it) to the only row of a, once per pass. A pass costs some 0.1 us beside its work,
which takes a third off the rate of the smallest set.
"""

from __future__ import annotations

import torch

from perfcast.microbench.kernels import KIB, PreparedCall, powers

UNIT = "GB/s"
MEANING = "a += s c, two loads and a store per element"
VARIANTS = ("float64",)
SHARED = True
SCALE = 0.5
FEWEST_PASSES = 4
_BYTES_PER_CALL = 8e6


def sizes(largest: int) -> list[int]:
    """Return bytes of both vectors together."""
    return powers(16 * KIB, largest)


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Make the vectors."""
    n = size // 16
    a = torch.zeros(1, n, dtype=torch.float64)
    c = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    passes = max(FEWEST_PASSES, round(_BYTES_PER_CALL / (24 * n)))
    to_row, repeated = torch.zeros(passes, dtype=torch.int64), c.expand(passes, n)
    return PreparedCall(
        lambda: a.index_add_(0, to_row, repeated, alpha=SCALE),
        24 * passes * n / 1e9,
        lambda: (a[0].numpy(), c.numpy(), passes),
    )
