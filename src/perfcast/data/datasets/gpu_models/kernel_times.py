"""Times of the kernels of whole models, from single kernels that were measured alone.

Two estimates of a kernel's time on a GPU, both from the authors' training rows:
- `fitted_times` fits the roofline of every kind of kernel to the other GPUs. The GPU in question counts as new, whether
  or not it has training rows, and the new GPUs of the authors never have an influence.
- `measured_times` averages the nearest shapes on the GPU itself. It is missing for a GPU without training rows.

Sources: sums of kernels as in Lee et al., NeuSight, 2025, ASPLOS; roofline by Williams, Waterman and Patterson, 2009,
CACM 52(4).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from perfcast.data.accelerators.kernel_costs import SHAPE, kernel_costs, kernel_light
from perfcast.data.accelerators.nearest_shapes import average_nearest
from perfcast.data.datasets.host.measured_tables import parse_numbers
from perfcast.data.sources.neusight import COLUMN_NAMES, SHAPES, TRAINING_GPUS, list_tables, read_kernels
from perfcast.utils.rate_fit import fit_rates

TABLE_OF = {
    "bmm": "bmm",
    "linear": "linear",
    "element_wise": "elem",
    "layer_norm": "ln",
    "softmax": "softmax",
    "copy": "elem",
}
"""Kind of kernel -> table of measured kernels. A copy moves bytes as an element-wise operation of one tensor does."""

_TERMS = ("t_compute", "t_memory")
"""Amounts of the roofline besides a constant per kernel: operations and bytes. The loads of tiles are no term: the GPUs
with most training kernels have second-level caches of 2 to 6 MiB, the new ones of 40 to 50, which serve these loads."""

_AXES = {"bmm": ("batch", "m", "n", "k"), "linear": ("m", "n", "k")}


def read_training_kernels(contents: Mapping[str, bytes], facts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the usable training kernels of every table, with the facts of their GPUs.

    Args:
        contents: Files of the archive by path.
        facts: Facts by GPU, one row each, with the columns of `kernel_costs.GPU`.

    Shapes:
        By table, one row per kernel: `gpu`, `kind`, `op`, the columns of `kernel_costs.SHAPE`, `latency` in ms, and
        those of `facts`.

    Raises:
        UserError: A table is damaged.
    """
    parts: dict[str, list[pd.DataFrame]] = {table: [] for table in SHAPES}
    for name, (table, subset) in list_tables().items():
        if subset == "train":
            parts[table].append(_parse(read_kernels(contents, name, table), table))
    kernels = {table: pd.concat(frames, ignore_index=True) for table, frames in parts.items()}
    return {table: frame.join(facts, on="gpu") for table, frame in kernels.items()}


def fitted_times(training: Mapping[str, pd.DataFrame], kernels: pd.DataFrame) -> np.ndarray:
    """Return the time of every kernel by the roofline of its kind, fitted to the other GPUs.

    Args:
        training: Kernels as `read_training_kernels` returns them.
        kernels: Columns `gpu`, `kind`, `op`, those of `kernel_costs.SHAPE` and of `kernel_costs.GPU`.

    Shapes:
        (kernels,); missing where no other GPU has kernels of the kind.

    Units:
        ms.
    """
    times = np.full(len(kernels), np.nan)
    table_of, gpu_of = kernels["kind"].map(TABLE_OF).to_numpy(), kernels["gpu"].to_numpy()
    wanted = _design(kernels)
    for table, measured in training.items():
        known, latency, trained = _design(measured), measured["latency"].to_numpy(), measured["gpu"].to_numpy()
        # the GPUs without training rows share one fit
        for gpu in (*TRAINING_GPUS, None):
            rows = table_of == table
            rows &= ~np.isin(gpu_of, TRAINING_GPUS) if gpu is None else gpu_of == gpu
            others = np.isin(trained, [name for name in TRAINING_GPUS if name != gpu])
            if rows.any() and others.any():
                # a row's sum in a fixed order, whatever the number of rows
                times[rows] = (wanted[rows] * np.array(fit_rates(known, latency, others))).sum(axis=1)
    return times


def measured_times(training: Mapping[str, pd.DataFrame], kernels: pd.DataFrame) -> np.ndarray:
    """Return the time of every kernel by the nearest shapes that were measured on its own GPU.

    The ratio of the measured time to the speed of light is averaged over the nearest shapes of the same operation, or
    of all operations of the table where it lacks that one.

    Args:
        training: Kernels as `read_training_kernels` returns them.
        kernels: Columns as in `fitted_times`.

    Shapes:
        (kernels,); missing where the GPU has no training rows.

    Units:
        ms.
    """
    times = np.full(len(kernels), np.nan)
    light = kernel_light(kernel_costs(kernels))
    table_of, gpu_of, op_of = (
        kernels["kind"].map(TABLE_OF).to_numpy(),
        kernels["gpu"].to_numpy(),
        kernels["op"].to_numpy(),
    )
    for table, gpu, op in sorted(set(zip(table_of, gpu_of, op_of, strict=True))):
        measured = training[table][training[table]["gpu"] == gpu]
        if (measured["op"] == op).any():
            measured = measured[measured["op"] == op]
        if len(measured):
            rows = np.flatnonzero((table_of == table) & (gpu_of == gpu) & (op_of == op))
            ratio = np.log(measured["latency"].to_numpy() / kernel_light(kernel_costs(measured)))
            near = average_nearest(_places(measured, table), ratio, _places(kernels.iloc[rows], table))
            times[rows] = np.exp(near) * light[rows]
    return times


def _parse(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    names = ["Latency", *SHAPES[table]]
    parsed = parse_numbers(frame, names)
    good = parsed[(parsed[names] > 0).all(axis=1) & parsed["Device"].isin(TRAINING_GPUS)]
    kernels = good[["Device", "OPName", *names]].rename(
        columns={"Device": "gpu", "OPName": "op", "Latency": "latency", **COLUMN_NAMES}
    )
    lacking = {name: np.nan for name in SHAPE if name not in kernels}
    return kernels.assign(kind=next(kind for kind, name in TABLE_OF.items() if name == table), **lacking)


def _design(kernels: pd.DataFrame) -> np.ndarray:
    """Return a constant and the terms of every kernel. Shapes: (kernels, 1 + terms)."""
    amounts = kernel_costs(kernels)
    return np.column_stack([np.ones(len(kernels)), *(amounts[name] for name in _TERMS)])


def _places(kernels: pd.DataFrame, table: str) -> np.ndarray:
    """Return the shapes in powers of two. Shapes: (kernels, axes)."""
    if table in _AXES:
        return np.asarray(np.log2(kernels[list(_AXES[table])].to_numpy(dtype=float)))
    width = kernels["width"].to_numpy(dtype=float)
    return np.asarray(np.log2(np.column_stack([kernels["batch"].to_numpy(dtype=float) * width, width])))
