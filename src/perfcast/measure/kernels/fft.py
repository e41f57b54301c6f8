"""Strided compute: the complex Fourier transform of n = 2^k points by numpy's pocketfft.

The rate is by convention 5 n log2 n operations over the time (Frigo and Johnson 2005, FFTW), whatever the number that
the algorithm needs.
"""

from __future__ import annotations

import math

import numpy as np

from perfcast.measure.kernels.base import KIB, MIB, Prepared, powers

UNIT = "GFLOP/s"
MEANING = "complex Fourier transform, 5 n log2 n operations"
VARIANTS = ("complex128",)
SHARED = True


def sizes(largest: int) -> list[int]:
    """Return bytes of input and output together, all of them powers of two."""
    return powers(64 * KIB, min(largest, 256 * MIB), 4)


def prepare(variant: str, size: int, seed: int) -> Prepared:
    """Fill the input at random."""
    n = size // 32
    points = np.random.default_rng(seed).standard_normal((n, 2)).view(variant).ravel()
    out = np.zeros_like(points)
    work = 5 * n * math.log2(n) / 1e9
    return Prepared(lambda: np.fft.fft(points, out=out), work, lambda: (points, out))
