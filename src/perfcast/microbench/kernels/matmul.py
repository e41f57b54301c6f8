"""Dense compute: the product of two square matrices, 2 n^3 operations, by the library of the torch build."""

from __future__ import annotations

import math

import torch

from perfcast.microbench.kernels import KIB, MIB, PreparedCall, powers

UNIT = "GFLOP/s"
MEANING = "product of square matrices, 2 n^3 operations"
VARIANTS = ("float32", "float64")
SHARED = True


def sizes(largest: int) -> list[int]:
    """Return the bytes of the three matrices together; larger ones take seconds and have the same rate."""
    return powers(256 * KIB, min(largest, 64 * MIB), 4)


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Create two random matrices."""
    dtype = {"float32": torch.float32, "float64": torch.float64}[variant]
    n = math.isqrt(size // (3 * dtype.itemsize))
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.rand(n, n, generator=generator, dtype=dtype) for _ in range(2))
    c = torch.zeros(n, n, dtype=dtype)
    return PreparedCall(lambda: torch.mm(a, b, out=c), 2 * n**3 / 1e9, lambda: (a.numpy(), b.numpy(), c.numpy()))
