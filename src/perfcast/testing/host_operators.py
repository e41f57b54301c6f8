"""Generated measurements of operators, shaped like the embedded ones, with their defects."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.microbench.operator_calls import Operator
from perfcast.microbench.operators import draw_operators
from perfcast.testing.host_gemm import MACHINE, round_six_digits
from perfcast.utils.io import atomic_path, write_json

_DEVICE = {
    **{"device": "cpu", "name": "Generated Processor 1000", "threads": 4, "sm_count": 4},
    **{"l2_mib": 8.0, "memory_gib": 15.6, "peak_tflops": 0.4, "memory_gb_per_s": 20.0},
}


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write host_operators.csv.gz and host_operators.json: `rows` valid rows, and defects.

    Some rows are repeated; one each is unstable, without a time, of no operator and without a length. The time follows
    a roofline with a cost per call.
    """
    random = np.random.default_rng(seed)
    operators = draw_operators(rows, device="cpu", elements=2e7, seed=seed)
    seconds = np.array([_seconds(operator) for operator in operators]) * np.exp(random.normal(0, 0.05, rows))
    frame = pd.DataFrame(
        [
            {
                "op": operator.op,
                "dtype": "float32",
                **{name: value or None for name, value in operator.lengths().items()},
            }
            for operator in operators
        ]
    ).astype(dict.fromkeys(operators[0].lengths(), "Int64"))
    frame = frame.assign(
        distribution=pd.Series("balanced", frame.index, dtype="str").where(frame["op"] == "moe"),
        warmups=2,
        repeats=5,
        seconds_median=round_six_digits(pd.Series(seconds)),
        seconds_min=round_six_digits(pd.Series(seconds * 0.98)),
        seconds_spread=random.uniform(0.001, 0.1, rows).round(4),
    )
    repeated = frame.iloc[: max(1, rows // 20)].assign(seconds_spread=0.3)
    wrong = [
        frame.iloc[:1].assign(seconds_spread=0.9),
        frame.iloc[:1].assign(seconds_median=0.0),
        frame.iloc[:1].assign(op="convolution"),
        frame.iloc[:1].assign(m=pd.array([None], dtype="Int64")),
    ]
    frame = pd.concat([frame, repeated, *wrong], ignore_index=True)
    frame = frame.assign(order=random.permutation(len(frame)), **{"pass": 0})
    folder = Path(folder)
    with atomic_path(folder / "host_operators.csv.gz") as path:
        # The bytes contain neither a time nor the temporary name.
        path.write_bytes(gzip.compress(frame.to_csv(index=False, lineterminator="\n").encode(), mtime=0))
    write_json(folder / "host_operators.json", {**MACHINE, "device": _DEVICE})


def _seconds(operator: Operator) -> float:
    return 5e-6 + max(operator.flops / 0.4e12, 4.0 * operator.elements / 20e9) / 0.6
