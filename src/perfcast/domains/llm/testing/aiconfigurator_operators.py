"""Generated tables of operators, shaped like the published files, with their known defects.

The numbers are made up: they follow operations and bytes with noise, and describe no real GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

_LENGTHS = tuple(2**power for power in range(14))
_ATTENTION: dict[str, tuple[Any, ...]] = {
    "batch_size": (1, 2, 4, 8, 16),
    "num_heads": (8, 16, 32, 64),
    "num_key_value_heads": (1, 2, 4, 8),
    "head_dim": (64, 128),
    WINDOW: (0, 0, 0, 128),
}
_SIZES: dict[str, dict[str, tuple[Any, ...]]] = {
    "gemm": {
        "m": _LENGTHS,
        "n": (512, 1024, 4096, 7168, 14336),
        "k": (1024, 2048, 4096, 7168),
    },
    "context_attention": {**_ATTENTION, "isl": _LENGTHS},
    "generation_attention": {**_ATTENTION, "step": _LENGTHS},
    "moe": {
        "num_tokens": _LENGTHS,
        "hidden_size": (2048, 2880, 4096, 6144, 7168),
        "inter_size": (768, 1536, 2048, 2560, 2880),
        "topk": (4, 8),
        "num_experts": (64, 128, 160, 256),
        "moe_tp_size": (1, 2, 4),
        "moe_ep_size": (1, 2, 4, 8),
        "distribution": ("balanced", "power_law_1.01", "power_law_1.2"),
    },
    "nccl": {
        "op_name": ("all_gather", "all_reduce", "reduce_scatter"),
        "num_gpus": (2, 4, 8),
        "message_size": tuple(256 * 4**power for power in range(10)),
    },
}
"""Table -> column -> values that are drawn."""
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
    shapes = {}
    for table, sizes in _SIZES.items():
        shapes[table] = pd.DataFrame({column: random.choice(values, count) for column, values in sizes.items()})
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
        known = known.assign(bytes_message=2 * known["message_elements"])
    time = _OVERHEAD_MS + light_time(known, operator_amounts(known)) / _SHARE
    return frame.assign(
        framework="made up",
        version="0.1",
        kernel_source=[f"kernel_{number % 3}" for number in range(len(frame))],
        latency=time * np.exp(random.normal(0, 0.05, len(frame))),
    )


def _formats(system: str, table: str) -> list[str]:
    if table == "nccl":
        return ["half"]
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
