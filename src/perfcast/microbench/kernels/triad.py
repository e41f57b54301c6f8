"""Memory bandwidth: the triad a <- a + s c over two vectors of float64.

Each element is two loads and one store, 24 bytes as STREAM counts them (McCalpin 1995). The triad of STREAM writes to a
third vector, and most machines read its lines before they write them, which STREAM does not count. This kernel works in
place, so that the counted bytes are the moved bytes. It measures the loop of torch, not the maximum of optimized code.

One native call passes over the vectors several times, so that its own cost is small: `index_add_` adds the row c (a
repeated view) to the only row of a, once per pass. The overhead of a pass is about 0.1 us, a third of the time of the
smallest set.
"""

from __future__ import annotations

import torch

from perfcast.microbench.kernels import KIB, PreparedCall, powers

UNIT = "GB/s"
MEANING = "a += s c, two loads and a store per element"
VARIANTS = ("float64",)
SHARED = True
SCALE = 0.5
MIN_PASSES = 4
_BYTES_PER_CALL = 8e6


def sizes(largest: int) -> list[int]:
    """Return the bytes of both vectors together."""
    return powers(16 * KIB, largest)


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Create the vectors."""
    n = size // 16
    a = torch.zeros(1, n, dtype=torch.float64)
    c = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    passes = max(MIN_PASSES, round(_BYTES_PER_CALL / (24 * n)))
    to_row, repeated = torch.zeros(passes, dtype=torch.int64), c.expand(passes, n)
    return PreparedCall(
        lambda: a.index_add_(0, to_row, repeated, alpha=SCALE),
        24 * passes * n / 1e9,
        lambda: (a[0].numpy(), c.numpy(), passes),
    )
