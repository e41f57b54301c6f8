"""Generated measurements of kernels, shaped like the embedded ones, with their defects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.testing.host_gemm import round_six_digits, write_measurements

# kernel, variant, unit, how threads combine, rate of one thread in the first-level cache and in memory
_KERNELS = (
    ("branches", "regular", "Mbranches/s", "sum", 600.0, 500.0),
    ("branches", "random", "Mbranches/s", "sum", 200.0, 180.0),
    ("chase", "lines", "Maccesses/s", "mean", 400.0, 8.0),
    ("fft", "complex128", "GFLOP/s", "sum", 4.0, 2.0),
    ("triad", "float64", "GB/s", "sum", 100.0, 15.0),
)
_CACHE_BYTES = 2.0**20


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write host_suite.csv.gz and host_suite.json: about `rows` rows, and defects.

    Some rows are repeated; one each is interrupted, unstable and without a time. The rate falls with the size from a
    cache's to the memory's, and grows with the threads where their rates add up.
    """
    random = np.random.default_rng(seed)
    sizes = np.unique(np.exp2(random.uniform(12, 26, size=max(2, rows // 8))).round() * 64)
    drawn = pd.DataFrame(
        {
            "what": random.integers(len(_KERNELS), size=rows),
            "bytes": random.choice(sizes, size=rows).astype(int),
            "threads": random.choice([1, 2, 4], size=rows),
        }
    ).drop_duplicates()
    kernels = pd.DataFrame(_KERNELS, columns=["kernel", "variant", "unit", "combined", "cached", "far"])
    frame = drawn.merge(kernels, left_on="what", right_index=True)
    near = 1 / (1 + frame["bytes"] / _CACHE_BYTES)
    per_thread = frame["cached"] ** near * frame["far"] ** (1 - near)
    per_thread = per_thread * frame["threads"] ** -0.1 * np.exp(random.normal(0, 0.03, size=len(frame)))
    seconds = round_six_digits(1e-3 / per_thread)
    frame = frame.assign(
        pinned=1,
        warmups=8,
        repeats=5,
        calls=20,
        work=1e-3,
        seconds_median=seconds,
        seconds_min=round_six_digits(seconds * 0.97),
        seconds_spread=random.uniform(0.001, 0.1, size=len(frame)).round(4),
        rate=round_six_digits(1e-3 / seconds * frame["threads"].where(frame["combined"] == "sum", 1)),
        waited_share=0.001,
        stolen_share=0.0,
        other_load=0.1,
        interrupted=0,
        order=0,
        **{"pass": 0},
    )
    repeated = frame.iloc[: max(1, rows // 20)].assign(seconds_spread=0.3, **{"pass": 1})
    interrupted = frame.iloc[:1].assign(interrupted=1, waited_share=0.4)
    unstable, untimed = frame.iloc[:1].assign(seconds_spread=0.9), frame.iloc[:1].assign(seconds_median=0.0)
    frame = pd.concat([frame, repeated, interrupted, unstable, untimed], ignore_index=True)
    frame["order"] = random.permutation(len(frame))
    text = frame.drop(columns=["what", "cached", "far"]).to_csv(index=False, lineterminator="\n")
    write_measurements(Path(folder), "host_suite", text)
