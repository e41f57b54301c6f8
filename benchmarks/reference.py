"""A fixed computation whose processor time every other one is divided by, so that figures of machines compare.

Run: python benchmarks/reference.py [--repeats 3]
The work is a mix like that of the pipeline: matrix products, sorts and gathers of NumPy, and Python objects and texts.
It depends on NumPy alone, not on perfcast, so that it stays the same when perfcast gets faster. Takes about five
seconds of one core. The checksum shows that the same work was done.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported

import numpy as np  # noqa: E402  # the number of threads is read at import

ROUNDS = 10


def _multiply(rng: np.random.Generator) -> float:
    """Solve ridge regressions: matrix products, as in linear and analytical predictors."""
    matrix = rng.normal(size=(20_000, 300))
    values = matrix @ rng.normal(size=300)
    weights = np.linalg.solve(matrix.T @ matrix + np.eye(300), matrix.T @ values)
    return float(np.abs(weights).sum())


def _gather(rng: np.random.Generator) -> float:
    """Sort, look up and add: memory, as in encoders, trees and bootstraps."""
    keys = rng.integers(0, 50_000, size=1_000_000)
    values = rng.random(1_000_000)
    order = np.argsort(keys, kind="stable")
    distinct, positions = np.unique(keys, return_inverse=True)
    sums = np.bincount(positions, weights=values, minlength=len(distinct))
    return float(sums[positions[order]].sum())


def _read(rng: np.random.Generator) -> float:
    """Split and count texts: Python, as in parsers and imports."""
    words = [f"part {number % 977} of {number % 31} GB" for number in rng.integers(0, 1_000_000, size=60_000).tolist()]
    counts: dict[str, int] = {}
    for text in words:
        for word in text.split():
            counts[word.lower()] = counts.get(word.lower(), 0) + 1
    return float(sum(count * len(word) for word, count in sorted(counts.items())))


def compute() -> str:
    """Do the work once. Returns: a checksum of its results, the same on every machine."""
    rng = np.random.default_rng(0)
    results = [part(rng) for _ in range(ROUNDS) for part in (_multiply, _gather, _read)]
    return hashlib.sha256(" ".join(f"{value:.6g}" for value in results).encode()).hexdigest()[:12]


def measure(repeats: int = 3) -> float:
    """Return the smallest processor time of the work in several runs. Units: s."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        compute()
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the fastest counts")
    options = parser.parse_args()
    print(f"reference computation: {measure(options.repeats):.2f} s of one core, checksum {compute()}")


if __name__ == "__main__":
    main()
