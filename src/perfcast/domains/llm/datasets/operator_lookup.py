"""Times of any operator on a GPU from its measured ones: the share of the speed of light of the nearest shapes.

Each operator and number format has a table per GPU. The ratio of the measured time to the speed of light varies slowly
with the shape, so it is averaged over the nearest measured shapes and multiplied by the speed of light of the shape in
question. No table of another GPU is read.

Source: interpolation of measured operators by Agrawal et al., Vidur, 2024, MLSys; inverse distance weights by Shepard,
1968, ACM National Conference.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.accelerator_catalog import find_gpus
from perfcast.domains.llm.accelerators.step_operators import light_of
from perfcast.domains.llm.sources.aiconfigurator_operators import (
    DTYPES,
    SHAPES,
    SYSTEMS,
    list_tables,
    read_operators,
)

DISTRIBUTION = "power_law_1.2"
"""Distribution of tokens over experts that the authors of the tables take for served models."""

_OTHER_FORMATS: dict[str, dict[str, tuple[str, ...]]] = {
    "gemm": {
        "fp8": ("bfloat16",),
        "nvfp4": ("bfloat16",),
        "int4_wo": ("bfloat16",),
    },
    "moe": {
        "fp8": ("bfloat16",),
        "nvfp4": ("w4a16_mxfp4", "bfloat16"),
        "int4_wo": ("w4a16_mxfp4", "bfloat16"),
    },
    "context_attention": {"fp8": ("bfloat16",)},
    "generation_attention": {"fp8": ("bfloat16",)},
}
"""Formats that stand in for one that a GPU's table lacks: software without kernels of a format uses those."""
_FIRST_FORMATS = {("moe", "fp8"): ("fp8_block",)}
"""Formats that come before the stated one: experts of these models have scales per block."""
_ATTENTION_AXES = ("batch", "sequence", "heads", "kv_heads", "head_dim", "attended")
_AXES = {
    "gemm": ("m", "n", "k"),
    "context_attention": _ATTENTION_AXES,
    "generation_attention": _ATTENTION_AXES,
    "moe": ("tokens", "hidden", "expert_hidden", "top_k", "experts", "tp", "ep"),
    "nccl": ("bytes_message", "gpus"),
}
_ELEMENT_BYTES = 2.0


def time_operators(folder: Path, operators: pd.DataFrame) -> np.ndarray:
    """Return the time of one execution of every operator in ms; missing where the GPU has no table of it.

    Args:
        folder: Folder of the source of operator tables.
        operators: Columns of `step_operators.list_operators`.

    Raises:
        UserError: A table is absent or damaged.
    """
    times = np.full(len(operators), np.nan)
    table_of = operators["op"].where(operators["op"].isin(list(_AXES)), "nccl").to_numpy()
    gpu_of = operators["gpu"].to_numpy()
    gpus = dict(zip(find_gpus(pd.Series(SYSTEMS)), SYSTEMS, strict=True))
    for gpu in sorted(set(gpu_of) & set(gpus)):
        for table in _AXES:
            rows = np.flatnonzero((gpu_of == gpu) & (table_of == table))
            if len(rows) and (gpus[gpu], table) in list_tables():
                measured = _read(folder, gpus[gpu], table, gpu)
                times[rows] = _time(measured, operators.iloc[rows], table)
    return times


def _read(folder: Path, system: str, table: str, gpu: str) -> pd.DataFrame:
    """Return a table of measured operators with the columns of a shape, its format and its time."""
    read = read_operators(folder, system, table)
    if table == "moe" and (read["distribution"] == DISTRIBUTION).any():
        read = read[read["distribution"] == DISTRIBUTION]
    shape = read[list(SHAPES[table])].rename(columns=SHAPES[table])
    shape = shape.drop(columns="distribution", errors="ignore")
    frame = shape.assign(
        op=read["op_name"].astype("str") if table == "nccl" else table,
        dtype=read[DTYPES[table]].astype("str"),
        latency=pd.to_numeric(read["latency"], errors="coerce"),
        gpu=gpu,
    )
    if table == "nccl":
        frame["bytes_message"] = frame["message_elements"] * _ELEMENT_BYTES
    numbers = frame[[name for name in _AXES[table] if name in frame]]
    return frame[(frame["latency"] > 0) & (numbers > 0).all(axis=1)].reset_index(drop=True)


def _time(measured: pd.DataFrame, wanted: pd.DataFrame, table: str) -> np.ndarray:
    """Return the times of the wanted operators of one table and GPU. Shapes: (wanted rows,)."""
    times = np.full(len(wanted), np.nan)
    ops = wanted["op"].to_numpy()
    dtypes = wanted["dtype"].to_numpy()
    for op, stated in sorted(set(zip(ops, dtypes, strict=True))):
        rows = np.flatnonzero((ops == op) & (dtypes == stated))
        of_op = measured[measured["op"] == op]
        dtype = next(
            (name for name in _formats(table, stated) if (of_op["dtype"] == name).any()),
            None,
        )
        if dtype is None:
            continue
        known = of_op[of_op["dtype"] == dtype]
        shapes = wanted.iloc[rows].assign(dtype=dtype)
        ratio = np.log(known["latency"].to_numpy() / light_of(known))
        finite = np.isfinite(ratio)
        near = average_nearest(_places(known, table)[finite], ratio[finite], _places(shapes, table))
        times[rows] = np.exp(near) * light_of(shapes)
    return times


def _formats(table: str, dtype: str) -> tuple[str, ...]:
    """Return the formats of a table that a number format is looked up in, the preferred one first."""
    return (
        *_FIRST_FORMATS.get((table, dtype), ()),
        dtype,
        *_OTHER_FORMATS.get(table, {}).get(dtype, ()),
    )


def _places(frame: pd.DataFrame, table: str) -> np.ndarray:
    """Return the shapes in powers of two. Shapes: (n, axes)."""
    if "attended" in _AXES[table]:
        window = np.asarray(frame["window"], dtype=float)
        length = np.asarray(frame["sequence"], dtype=float)
        frame = frame.assign(attended=np.where(window > 0, np.minimum(window, length), length))
    sizes = frame[list(_AXES[table])].to_numpy(dtype=float)
    return np.asarray(np.log2(np.maximum(sizes, 1.0)))


NEIGHBORS = 4
_MIN_DISTANCE = 0.05
"""Distance, in powers of two, below which a shape counts as measured."""


def average_nearest(places: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the mean of the values of the nearest places, weighted by inverse distances.

    Args:
        places: Measured shapes in powers of two, at least one.
        values: A value of each of them.
        wanted: Shapes in question, in powers of two.

    Shapes:
        places (n, axes), values (n,), wanted (m, axes) -> (m,).
    """
    from scipy.spatial import cKDTree

    count = min(NEIGHBORS, len(places))
    distance, nearest = cKDTree(places).query(wanted, k=list(range(1, count + 1)))
    weight = 1 / np.maximum(distance, _MIN_DISTANCE)
    return np.asarray((weight * values[nearest]).sum(axis=1) / weight.sum(axis=1))
