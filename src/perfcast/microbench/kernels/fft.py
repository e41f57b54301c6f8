"""Strided compute: the complex Fourier transform of n = 2^k points by numpy's pocketfft.

By convention, the rate is 5 n log2 n operations over the time (Frigo and Johnson 2005, FFTW), independent of the
algorithm. One native call repeats the transform, so that its own cost and that of its table of roots are small. The
time includes the allocation of work memory by the library.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from perfcast.microbench.kernels import KIB, MIB, PreparedCall, powers

UNIT = "GFLOP/s"
MEANING = "complex Fourier transform, 5 n log2 n operations"
VARIANTS = ("complex128",)
SHARED = True
_POINTS_PER_CALL = 2**21


def sizes(largest: int) -> list[int]:
    """Return the bytes of input and output together, powers of two."""
    return powers(64 * KIB, min(largest, 256 * MIB), 4)


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Generate random points."""
    n = size // 32
    points = np.random.default_rng(seed).standard_normal((n, 2)).view(variant).ravel()
    out = np.zeros_like(points)
    times = max(1, _POINTS_PER_CALL // n)
    # all rows share their memory: every transform reads the same points and writes the same result
    rows, results = np.broadcast_to(points, (times, n)), as_strided(out, (times, n), (0, out.itemsize))
    work = times * 5 * n * math.log2(n) / 1e9
    return PreparedCall(lambda: np.fft.fft(rows, out=results), work, lambda: (points, out, times))
