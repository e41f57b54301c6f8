"""Measurement of matrix products C = op(A) op(B) over sizes, data types, transposes and threads.

Method: operands are warm (the same memory in every repetition), and C is preallocated. A sample is the mean of enough
calls to last `MIN_SAMPLE_SECONDS`, and the median over samples is the result. Configurations are measured in random
order, so that a drift of the clock does not correlate with a characteristic. The remaining time budget is used to
repeat the least steady ones.
"""

from __future__ import annotations

import gzip
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from perfcast.domains.gemm.timing import (
    HARMLESS_WAIT,
    Timing,
    measure_steadiest,
    relative_spread,
    thread_counts,
    until_steady,
    waited_seconds,
)
from perfcast.microbench.machine import describe_machine
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, check_writable, write_json

NAME = "host_gemm"
DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
}
SMALLEST = 16
LARGEST = 4096
"""Smallest and largest side of an operand."""
MIN_SAMPLE_SECONDS = 5e-4
_ORDER = ("dtype", "m", "n", "k", "transpose_a", "transpose_b", "threads")
"""Fields that the rows of the table are sorted by."""


@dataclass(frozen=True)
class Gemm:
    """One configuration: op(A) is m x k, op(B) is k x n."""

    m: int
    n: int
    k: int
    dtype: str
    transpose_a: bool
    transpose_b: bool
    threads: int

    @property
    def flops(self) -> float:
        """Floating-point operations of one product, 2 m n k."""
        return 2.0 * self.m * self.n * self.k


def sample_configurations(count: int, *, max_threads: int, seed: int) -> list[Gemm]:
    """Draw distinct configurations: sizes log-uniform in 16..4096, so that large ones are rare.

    A third of the sizes is rounded to a multiple of a power of two (as in neural networks), a sixth to the next
    smaller prime, a sixth to an odd number; the others stay as drawn.
    """
    random = np.random.default_rng(seed)
    numbers = np.arange(SMALLEST, LARGEST + 1)
    primes = np.array([number for number in numbers if _is_prime(int(number))])
    threads = thread_counts(max_threads)

    def size() -> int:
        drawn = round(math.exp(random.uniform(math.log(SMALLEST), math.log(LARGEST))))
        shape = random.uniform()
        if shape < 1 / 3:
            step = int(2 ** random.integers(3, 8))
            rounded = max(step, round(drawn / step) * step, SMALLEST)
            return min(rounded, LARGEST)
        if shape < 1 / 2:
            place = int(np.searchsorted(primes, drawn, side="right")) - 1
            return int(primes[max(0, place)])
        if shape < 2 / 3:
            return min(drawn | 1, LARGEST - 1)
        return drawn

    configurations: dict[Gemm, None] = {}
    while len(configurations) < count:
        gemm = Gemm(
            m=size(),
            n=size(),
            k=size(),
            dtype=list(DTYPES)[random.integers(len(DTYPES))],
            transpose_a=bool(random.integers(2)),
            transpose_b=bool(random.integers(2)),
            threads=int(threads[random.integers(len(threads))]),
        )
        configurations[gemm] = None
    return list(configurations)


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


class _Operands:
    """Pool of random numbers per data type; operands are views of it, which cost no time."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        elements = LARGEST**2
        pool = torch.rand(2 * elements, generator=generator) - 0.5
        self.pools = {name: pool.to(dtype) for name, dtype in DTYPES.items()}
        self.results = {name: torch.empty(elements, dtype=dtype) for name, dtype in DTYPES.items()}

    def product(self, gemm: Gemm) -> Callable[[], object]:
        """Return a call that computes the product once."""
        pool = self.pools[gemm.dtype]
        a_size = gemm.m * gemm.k
        b_size = gemm.k * gemm.n
        a_flat = pool[:a_size]
        b_flat = pool[a_size : a_size + b_size]
        a = a_flat.view(gemm.k, gemm.m).T if gemm.transpose_a else a_flat.view(gemm.m, gemm.k)
        b = b_flat.view(gemm.n, gemm.k).T if gemm.transpose_b else b_flat.view(gemm.k, gemm.n)
        out = self.results[gemm.dtype][: gemm.m * gemm.n].view(gemm.m, gemm.n)
        return lambda: torch.mm(a, b, out=out)


def time_product(product: Callable[[], object]) -> tuple[int, list[float], bool]:
    """Return (warm-up calls, seconds per call of each sample, whether other work interrupted)."""
    begin = time.perf_counter()
    product()
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    product()
    once = min(first, time.perf_counter() - begin)
    calls = max(1, math.ceil(MIN_SAMPLE_SECONDS / max(once, 1e-7)))

    def sample() -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            product()
        return (time.perf_counter() - begin) / calls

    before = waited_seconds()
    samples = until_steady(sample)
    waited = waited_seconds() - before
    measured = calls * sum(samples)
    return 2, samples, waited > HARMLESS_WAIT * measured


def measure(
    configurations: list[Gemm],
    *,
    budget_seconds: float,
    seed: int,
    progress: Callable[[int, int, int], None],
) -> dict[Gemm, Timing]:
    """Measure and keep the steadiest timing of every configuration; `progress` gets (done, total, repeated)."""
    operands = _Operands(seed)

    def time_one(gemm: Gemm, order: int, pass_number: int) -> Timing:
        torch.set_num_threads(gemm.threads)
        warmups, samples, interrupted = time_product(operands.product(gemm))
        return Timing(
            warmups=warmups,
            repeats=len(samples),
            median=float(np.median(samples)),
            minimum=min(samples),
            spread=relative_spread(samples),
            order=order,
            measured_in=pass_number,
            interrupted=interrupted,
        )

    return measure_steadiest(
        configurations,
        time_one,
        budget_seconds=budget_seconds,
        seed=seed,
        progress=progress,
    )


def as_frame(timings: dict[Gemm, Timing]) -> pd.DataFrame:
    """Return the measured table, ordered by the configuration, with GFLOP/s of the median.

    Configurations with only interrupted measurements are excluded.
    """
    rows = []
    for gemm in sorted(timings, key=attrgetter(*_ORDER)):
        timing = timings[gemm]
        if timing.interrupted:
            continue
        rows.append(
            {
                **asdict(gemm),
                "transpose_a": int(gemm.transpose_a),
                "transpose_b": int(gemm.transpose_b),
                "warmups": timing.warmups,
                "repeats": timing.repeats,
                "seconds_median": float(f"{timing.median:.6g}"),
                "seconds_min": float(f"{timing.minimum:.6g}"),
                "seconds_spread": float(f"{timing.spread:.4g}"),
                "gflops": float(f"{gemm.flops / timing.median / 1e9:.6g}"),
                "order": timing.order,
                "pass": timing.measured_in,
            }
        )
    return pd.DataFrame(rows)


def write_measurement(folder: Path, frame: pd.DataFrame) -> None:
    """Write the table, and the description of the machine, into the folder."""
    with atomic_path(folder / f"{NAME}.csv.gz") as path:
        # no file name and no time in the header, so that equal tables give equal bytes
        path.write_bytes(gzip.compress(frame.to_csv(index=False, lineterminator="\n").encode(), mtime=0))
    write_json(folder / f"{NAME}.json", describe_machine())


def measure_gemm(
    out: Path,
    *,
    configurations: int,
    minutes: float,
    max_threads: int,
    seed: int,
    progress: Callable[[int, int, int], None],
) -> list[str]:
    """Measure matrix products, write the table and the description of the machine, and return notes for the user.

    Args:
        out: Folder of host_gemm.csv.gz and host_gemm.json.
        configurations: Distinct configurations.
        minutes: Time budget.
        max_threads: Threads of a product at most.
        seed: Seed of sizes and order.
        progress: Gets the measured configurations, all configurations, and the repeats.

    Raises:
        UserError: Other work interrupts every configuration.
    """
    for ending in (".csv.gz", ".json"):
        check_writable(out / f"{NAME}{ending}")
    samples = sample_configurations(configurations, max_threads=max_threads, seed=seed)
    timings = measure(samples, budget_seconds=60 * minutes, seed=seed, progress=progress)
    frame = as_frame(timings)
    if frame.empty:
        raise UserError(
            "a measurement needs an idle core",
            f"other work interrupted every one of {len(samples)} configurations",
            "try again on an idle machine, or with a larger --budget-minutes",
        )
    write_measurement(out, frame)
    notes = [f"measured {len(frame)} configurations, median spread {100 * frame['seconds_spread'].median():.1f} %"]
    if missing := len(samples) - len(frame):
        notes.append(f"{missing} configurations are missing: not reached, or always interrupted")
    return notes
