"""Generated tables of operators, shaped like the published files, with their known defects.

The numbers are made up: they follow operations and bytes with noise, and describe no real GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.accelerator_catalog import find_gpus, read_gpus
from perfcast.domains.llm.accelerators.operator_costs import light_time, operator_amounts
from perfcast.domains.llm.sources.aiconfigurator_operators import (
    DTYPES,
    SHAPES,
    WINDOW,
    list_tables,
    table_file,
)
from perfcast.utils.io import atomic_path

_BLACKWELL = ("b200_sxm", "b300_sxm", "gb200", "gb300")
_OVERHEAD_MS = 0.006
_SHARE = 0.6
"""Share of the peaks that every made-up GPU reaches."""


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write a table per GPU and operator, each known defect once, and a license.

    Every GPU has the same shapes, `rows` / 7 of each operator, at least 24.
    """
    random = np.random.default_rng(seed)
    folder = Path(folder)
    count = max(24, rows // 7)
    shapes = {table: draw(count, random) for table, draw in _DRAWS.items()}
    for system, table in list_tables():
        frame = _measure(shapes[table], system, table, random)
        if (system, table) == ("h100_sxm", "gemm"):
            frame = pd.concat([frame, _make_defective(frame)], ignore_index=True)
        if system == "a100_sxm" and WINDOW in frame:
            frame = frame[frame[WINDOW] == 0].drop(columns=WINDOW)
        path = folder / table_file(system, table)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            frame.to_parquet(temporary, index=False)
    with atomic_path(folder / "LICENSE") as temporary:
        temporary.write_text("Generated text in the place of a license.\n", encoding="utf-8")


def _measure(shapes: pd.DataFrame, system: str, table: str, random: np.random.Generator) -> pd.DataFrame:
    """Return the rows of a file: every shape in every format of the GPU, and its made-up time."""
    frame = shapes.merge(pd.DataFrame({DTYPES[table]: _formats(system, table)}), how="cross")
    known = frame.rename(columns=SHAPES[table]).assign(dtype=frame[DTYPES[table]], op=frame.get("op_name", table))
    gpu = find_gpus(pd.Series([system])).iloc[0]
    facts = read_gpus().loc[gpu]
    known = known.assign(**{name: facts[name] for name in facts.index if name not in known})
    if table == "nccl":
        known = known.assign(bytes_message=known["message_elements"] * known["dtype"].map({"half": 2, "int8": 1}))
    time = _OVERHEAD_MS + light_time(known, operator_amounts(known)) / _SHARE
    return frame.assign(
        framework="made up",
        version="0.1",
        kernel_source=[f"kernel_{number % 3}" for number in range(len(frame))],
        latency=time * np.exp(random.normal(0, 0.05, len(frame))),
    )


def _formats(system: str, table: str) -> list[str]:
    if table == "nccl":
        return ["half", "int8"]
    if system == "a100_sxm":
        return ["bfloat16"]
    formats = ["bfloat16", "fp8"]
    if table in {"gemm", "moe"} and system in _BLACKWELL:
        formats.append("nvfp4")
    return formats


def _make_defective(frame: pd.DataFrame) -> pd.DataFrame:
    """Return every row with each of the defects."""
    rows = frame.assign(m=frame["m"] + 7)
    return pd.concat(
        [
            rows.assign(latency=0.0),
            rows.assign(latency=np.nan),
            rows.assign(k=0),
        ],
        ignore_index=True,
    )


def _gemm(count: int, random: np.random.Generator) -> pd.DataFrame:
    sites = [
        (1024, 4096),
        (4096, 1024),
        (4096, 4096),
        (14336, 4096),
        (7168, 2048),
        (512, 7168),
    ]
    site = [sites[number % len(sites)] for number in range(count)]
    sizes = random.integers(1, 8192, count)
    return pd.DataFrame(
        {
            "m": sizes,
            "n": [n for n, _ in site],
            "k": [k for _, k in site],
        }
    )


def _attention(length: str, longest: int) -> Callable[[int, np.random.Generator], pd.DataFrame]:
    def draw(count: int, random: np.random.Generator) -> pd.DataFrame:
        kv = random.choice([1, 2, 4, 8], count)
        return pd.DataFrame(
            {
                "batch_size": random.choice([1, 2, 4, 8, 16], count),
                length: random.integers(1, longest, count),
                "num_heads": kv * random.choice([1, 4, 8], count),
                "num_key_value_heads": kv,
                "head_dim": random.choice([64, 128], count),
                WINDOW: np.where(np.arange(count) % 4 == 3, 128, 0),
            }
        )

    return draw


def _mixture(count: int, random: np.random.Generator) -> pd.DataFrame:
    sites = [
        (7168, 2048, 8, 256),
        (4096, 1536, 8, 128),
        (2880, 2880, 4, 128),
        (6144, 2560, 8, 160),
        (2048, 768, 8, 64),
    ]
    hidden, inner, used, experts = zip(*(sites[number % len(sites)] for number in range(count)), strict=True)
    return pd.DataFrame(
        {
            "num_tokens": random.integers(1, 6000, count),
            "hidden_size": hidden,
            "inter_size": inner,
            "topk": used,
            "num_experts": experts,
            "moe_tp_size": random.choice([1, 2, 4], count),
            "moe_ep_size": random.choice([1, 2, 4, 8], count),
            "distribution": random.choice(["balanced", "power_law_1.01", "power_law_1.2"], count),
        }
    )


def _collective(count: int, random: np.random.Generator) -> pd.DataFrame:
    del random
    sizes = [256 << (2 * power) for power in range(max(2, min(10, count // 12)))]
    operators = ["all_gather", "all_reduce", "alltoall", "reduce_scatter"]
    rows = [(name, gpus, size) for name in operators for gpus in (2, 4, 8) for size in sizes]
    return pd.DataFrame(rows, columns=["op_name", "num_gpus", "message_size"])


_DRAWS: dict[str, Callable[[int, np.random.Generator], pd.DataFrame]] = {
    "gemm": _gemm,
    "context_attention": _attention("isl", 8192),
    "generation_attention": _attention("step", 8192),
    "moe": _mixture,
    "nccl": _collective,
}
