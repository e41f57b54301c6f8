"""Measurement of matrix products C = op(A) op(B) over sizes, data types, transposes and threads.

Method: operands are warm (the same memory in every repetition), and C is preallocated. A sample is the mean of enough
calls to last `MIN_SAMPLE_SECONDS`, and the median over samples is the result. Configurations are measured in random
order, so that a drift of the clock does not correlate with a characteristic. The remaining time budget is used to
repeat the least steady ones.

On a GPU, the calls of a sample are queued and the sample ends with the last of them: a product that is shorter than its
launch takes the time of the launch. float32 is computed in float32, not in the shorter format of tensor cores.
"""

from __future__ import annotations

import gzip
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
SMALLEST, LARGEST = 16, {"cpu": 4096, "cuda": 8192}
MIN_SAMPLE_SECONDS = 5e-4


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


def sample_configurations(count: int, *, max_threads: int, seed: int, largest: int = LARGEST["cpu"]) -> list[Gemm]:
    """Draw distinct configurations: sizes log-uniform in 16..`largest`, so that large ones are rare.

    A third of the sizes is rounded to a multiple of a power of two (as in neural networks), a sixth to the next
    smaller prime, a sixth to an odd number; the others stay as drawn.
    """
    random = np.random.default_rng(seed)
    numbers = np.arange(SMALLEST, largest + 1)
    primes = np.array([p for p in numbers if all(p % d for d in range(2, math.isqrt(int(p)) + 1))])
    threads = thread_counts(max_threads)

    def size() -> int:
        drawn = round(math.exp(random.uniform(math.log(SMALLEST), math.log(largest))))
        shape = random.uniform()
        if shape < 1 / 3:
            step = int(2 ** random.integers(3, 8))
            return min(max(step, round(drawn / step) * step, SMALLEST), largest)
        if shape < 1 / 2:
            return int(primes[max(0, int(np.searchsorted(primes, drawn, side="right")) - 1)])
        if shape < 2 / 3:
            return min(drawn | 1, largest - 1)
        return drawn

    configurations: dict[Gemm, None] = {}
    while len(configurations) < count:
        configurations[
            Gemm(
                m=size(),
                n=size(),
                k=size(),
                dtype=list(DTYPES)[random.integers(len(DTYPES))],
                transpose_a=bool(random.integers(2)),
                transpose_b=bool(random.integers(2)),
                threads=int(threads[random.integers(len(threads))]),
            )
        ] = None
    return list(configurations)


class _Operands:
    """Pool of random numbers per data type; operands are views of it, which cost no time."""

    def __init__(self, seed: int, device: str = "cpu") -> None:
        generator, elements = torch.Generator().manual_seed(seed), LARGEST[device] ** 2
        pool = torch.rand(2 * elements, generator=generator) - 0.5
        self.pools = {name: pool.to(device, dtype) for name, dtype in DTYPES.items()}
        self.results = {name: torch.empty(elements, dtype=dtype, device=device) for name, dtype in DTYPES.items()}

    def product(self, gemm: Gemm) -> Callable[[], object]:
        """Return a call that computes the product once."""
        pool = self.pools[gemm.dtype]
        a_size, b_size = gemm.m * gemm.k, gemm.k * gemm.n
        a_flat, b_flat = pool[:a_size], pool[a_size : a_size + b_size]
        a = a_flat.view(gemm.k, gemm.m).T if gemm.transpose_a else a_flat.view(gemm.m, gemm.k)
        b = b_flat.view(gemm.n, gemm.k).T if gemm.transpose_b else b_flat.view(gemm.k, gemm.n)
        out = self.results[gemm.dtype][: gemm.m * gemm.n].view(gemm.m, gemm.n)
        return lambda: torch.mm(a, b, out=out)


def time_product(product: Callable[[], object], device: str = "cpu") -> tuple[int, list[float], bool]:
    """Return (warm-up calls, seconds per call of each sample, whether other work interrupted)."""
    begin = time.perf_counter()
    product()
    wait_for(device)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    product()
    wait_for(device)
    once = min(first, time.perf_counter() - begin)
    calls = max(1, math.ceil(MIN_SAMPLE_SECONDS / max(once, 1e-7)))

    def sample() -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            product()
        wait_for(device)
        return (time.perf_counter() - begin) / calls

    waited = waited_seconds()
    samples = until_steady(sample)
    waited = waited_seconds() - waited
    return 2, samples, waited > HARMLESS_WAIT * calls * sum(samples)


def measure(
    configurations: list[Gemm],
    *,
    budget_seconds: float,
    seed: int,
    device: str = "cpu",
    progress: Callable[[int, int, int], None] = lambda done, total, again: None,
) -> dict[Gemm, Timing]:
    """Measure and keep the steadiest timing of every configuration; `progress` gets (done, total, repeated)."""
    operands = _Operands(seed, device)

    def time_one(gemm: Gemm, order: int, pass_number: int) -> Timing:
        torch.set_num_threads(gemm.threads)
        warmups, samples, interrupted = time_product(operands.product(gemm), device)
        median, spread = float(np.median(samples)), relative_spread(samples)
        return Timing(warmups, len(samples), median, min(samples), spread, order, pass_number, interrupted)

    return measure_steadiest(configurations, time_one, budget_seconds=budget_seconds, seed=seed, progress=progress)


def as_frame(timings: dict[Gemm, Timing]) -> pd.DataFrame:
    """Return the measured table, ordered by the configuration, with GFLOP/s of the median.

    Configurations with only interrupted measurements are excluded.
    """
    rows = []
    for gemm in sorted(timings, key=lambda g: (g.dtype, g.m, g.n, g.k, g.transpose_a, g.transpose_b, g.threads)):
        timing = timings[gemm]
        if timing.interrupted:
            continue
        rows.append(
            {
                "m": gemm.m,
                "n": gemm.n,
                "k": gemm.k,
                "dtype": gemm.dtype,
                "transpose_a": int(gemm.transpose_a),
                "transpose_b": int(gemm.transpose_b),
                "threads": gemm.threads,
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


def wait_for(device: str) -> None:
    """Return when the device has ended what was started; a processor has already."""
    if device == "cuda":
        torch.cuda.synchronize()


def gpu_as_machine() -> dict[str, Any]:
    """Return what replaces the processor's facts in the description of a machine whose GPU was measured.

    Multiprocessors stand for cores. Caches of a multiprocessor are unknown to torch.
    """
    card = torch.cuda.get_device_properties(0)
    unknown = dict.fromkeys(("cpu_vendor", "threads_per_core", "sockets", "l1d_kib", "l1i_kib", "l3_kib"))
    return unknown | {
        "cpu_model": card.name,
        "cores": card.multi_processor_count,
        "l2_kib": card.L2_cache_size / 2**10,
        "memory_gib": round(card.total_memory / 2**30, 1),
        "flags": [],
    }


def write_measurement(folder: Path, frame: pd.DataFrame, device: str) -> None:
    """Write the table, and the description of the machine, into the folder."""
    with atomic_path(folder / f"{NAME}.csv.gz") as path:
        # no file name and no time in the header, so that equal tables give equal bytes
        path.write_bytes(gzip.compress(frame.to_csv(index=False, lineterminator="\n").encode(), mtime=0))
    write_json(folder / f"{NAME}.json", describe_machine() | (gpu_as_machine() if device == "cuda" else {}))


def measure_gemm(
    out: Path,
    *,
    configurations: int,
    minutes: float,
    max_threads: int,
    seed: int,
    progress: Callable[[int, int, int], None],
    device: str = "cpu",
) -> list[str]:
    """Measure matrix products, write the table and the description of the machine, and return notes for the user.

    Args:
        out: Folder of host_gemm.csv.gz and host_gemm.json.
        configurations: Distinct configurations.
        minutes: Time budget.
        max_threads: Threads of a product at most, on a CPU.
        seed: Seed of sizes and order.
        progress: Gets the measured configurations, all configurations, and the repeats.
        device: cpu or cuda.

    Raises:
        UserError: The device is absent, or other work interrupts every configuration.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda needs a GPU that torch can use", "there is none", "choose --device cpu")
    for ending in (".csv.gz", ".json"):
        check_writable(out / f"{NAME}{ending}")
    threads, largest = max_threads if device == "cpu" else 1, LARGEST[device]
    samples = sample_configurations(configurations, max_threads=threads, seed=seed, largest=largest)
    timings = measure(samples, budget_seconds=60 * minutes, seed=seed, device=device, progress=progress)
    frame = as_frame(timings)
    if frame.empty:
        raise UserError(
            "a measurement needs an idle core",
            f"other work interrupted every one of {len(samples)} configurations",
            "try again on an idle machine, or with a larger --budget-minutes",
        )
    write_measurement(out, frame, device)
    notes = [f"measured {len(frame)} configurations, median spread {100 * frame['seconds_spread'].median():.1f} %"]
    if missing := len(samples) - len(frame):
        notes.append(f"{missing} configurations are missing: not reached, or always interrupted")
    return notes
