"""Generated measurements of matrix products, shaped like the embedded ones, with their defects."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.testing.generated_machine import MACHINE
from perfcast.utils.io import atomic_path, write_json

_BYTES = {"float32": 4, "float64": 8, "bfloat16": 2}


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write host_gemm.csv.gz and host_gemm.json: `rows` valid rows, some repeated, one unstable, one without a time.

    The rate follows a roofline model with a cost per call.
    """
    random = np.random.default_rng(seed)
    shapes = np.exp(random.uniform(np.log(16), np.log(4096), size=(max(1, rows // 2), 3))).round()
    sizes = shapes[random.integers(len(shapes), size=rows)]
    frame = pd.DataFrame(
        {
            "m": sizes[:, 0].astype(int),
            "n": sizes[:, 1].astype(int),
            "k": sizes[:, 2].astype(int),
            "dtype": random.choice(list(_BYTES), size=rows),
            "transpose_a": random.integers(2, size=rows),
            "transpose_b": random.integers(2, size=rows),
            "threads": random.choice([1, 2, 4], size=rows),
        }
    ).drop_duplicates()
    frame = _add_timings(frame, random)
    repeated = frame.iloc[: max(1, rows // 20)].assign(seconds_spread=0.3, **{"pass": 1})
    unstable = frame.iloc[:1].assign(seconds_spread=0.9)
    untimed = frame.iloc[:1].assign(seconds_median=0.0)
    frame = pd.concat([frame, repeated, unstable, untimed], ignore_index=True)
    frame["order"] = random.permutation(len(frame))
    text = frame.to_csv(index=False, lineterminator="\n")
    with atomic_path(folder / "host_gemm.csv.gz") as path:
        # the bytes contain neither a time nor the temporary name
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    write_json(folder / "host_gemm.json", MACHINE)


def _add_timings(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    size = frame["dtype"].map(_BYTES)
    flops = 2.0 * frame["m"] * frame["n"] * frame["k"]
    moved = size * (frame["m"] * frame["k"] + frame["k"] * frame["n"] + frame["m"] * frame["n"])
    compute = flops / (60e9 * 4 / size * frame["threads"] ** 0.9)
    seconds = 2e-6 + compute.clip(lower=moved / 20e9)
    seconds = _round_six_digits(seconds * np.exp(random.normal(0, 0.03, size=len(frame))))
    return frame.assign(
        warmups=2,
        repeats=5,
        seconds_median=seconds,
        seconds_min=_round_six_digits(seconds * 0.97),
        seconds_spread=random.uniform(0.001, 0.1, size=len(frame)).round(4),
        gflops=_round_six_digits(flops / seconds / 1e9),
    ).assign(**{"pass": 0})


def _round_six_digits(values: pd.Series) -> pd.Series:
    """Round to six significant digits."""
    return pd.Series([float(f"{value:.6g}") for value in values], index=values.index)
