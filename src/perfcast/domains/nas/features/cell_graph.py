"""Work and shape of a NAS-Bench-201 network, from the six operations of the cell that it repeats."""

from __future__ import annotations

from itertools import product

import numpy as np

from perfcast.domains import read_columns
from perfcast.features.feature_math import append, derive_distinct, require
from perfcast.schema.table import Table

EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
"""Edges of a cell, 0 its input and 3 its output; the columns are op_<from>_<to>."""

REQUIRES = tuple(f"op_{start}_{end}" for start, end in EDGES)

CELLS = 5
CHANNELS = (16, 32, 64)
SIDE = 32
"""Cells of a stage, channels of each stage, and side of the image at the first; it halves from stage to stage."""

DEAD = "dead"
"""Value of a live operation's column for an edge that need not be computed."""

_SHORT = {
    "nor_conv_3x3": "conv3",
    "nor_conv_1x1": "conv1",
    "avg_pool_3x3": "pool",
    "skip_connect": "skip",
}
_FIXED_MFLOP = 7.783
_FIXED_PARAMETERS = 73_306
"""Cost of stem, reductions and classifier: the one that NAS-Bench-201 states for a cell without operations."""

_COLUMNS = read_columns(__package__, "columns.csv", "cell_graph")
_LIVE_COLUMNS = read_columns(__package__, "columns.csv", "live_cell")


def cost(kernels: dict[str, int]) -> tuple[float, float]:
    """Return MFLOP (multiply-adds, as the benchmark counts them) and parameters of a network.

    `kernels` says how many convolutions of each kind, conv1 and conv3, its cell has. Every stage costs the same
    multiply-adds: channels double as the image's sides halve. Source: Dong and Yang, arXiv 2001.00326, appendix.
    """
    weights = 9 * kernels.get("conv3", 0) + kernels.get("conv1", 0)
    convolutions = kernels.get("conv3", 0) + kernels.get("conv1", 0)
    adds = sum(CELLS * (width * SIDE // 2**stage) ** 2 for stage, width in enumerate(CHANNELS))
    parameters = sum(CELLS * (weights * width**2 + convolutions * 2 * width) for width in CHANNELS)
    return _FIXED_MFLOP + weights * adds / 1e6, float(_FIXED_PARAMETERS + parameters)


def describe(operations: tuple[object, ...]) -> dict[str, float | str]:
    """Return the derived numbers of one cell, by the operations of `EDGES`.

    An edge is live when it lies on a path from the cell's input to its output: the others need not be computed.
    """
    present = {
        edge: _SHORT[str(operation)] for edge, operation in zip(EDGES, operations, strict=True) if operation in _SHORT
    }
    from_input = _reachable(present, 0, forward=True)
    to_output = _reachable(present, 3, forward=False)
    live = {edge: name for edge, name in present.items() if edge[0] in from_input and edge[1] in to_output}
    kinds = list(_SHORT.values())
    counts = {kind: list(present.values()).count(kind) for kind in kinds}
    live_counts = {kind: list(live.values()).count(kind) for kind in kinds}
    mflop, parameters = cost(counts)
    values: dict[str, float | str] = {
        "mflop": mflop,
        "kparameters": parameters / 1e3,
        "live_mflop": cost(live_counts)[0],
    }
    values |= {f"n_{kind}": float(counts[kind]) for kind in kinds}
    values |= {f"live_{kind}": float(live_counts[kind]) for kind in kinds}
    values["connected"] = float(bool(live))
    incoming = [sum(end == node for _, end in live) for node in (1, 2, 3)]
    values["additions"] = float(sum(max(0, count - 1) for count in incoming))
    values["depth_conv"] = _longest(live, {"conv3": 1.0, "conv1": 1.0})
    values["depth_conv3"] = _longest(live, {"conv3": 1.0})
    values["depth_operations"] = _longest(live, {"conv3": 1.0, "conv1": 1.0, "pool": 1.0})
    return values | {f"live_op_{start}_{end}": live.get((start, end), DEAD) for start, end in EDGES}


def derive(table: Table) -> Table:
    """Append the derived numbers to a table of cells.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    values = derive_distinct(frame, REQUIRES, (*_COLUMNS, *_LIVE_COLUMNS), describe)
    extended = append(table, _COLUMNS, values, logs=("mflop", "live_mflop"))
    return extended.with_columns((column, values[column.name]) for column in _LIVE_COLUMNS)


def _reachable(edges: dict[tuple[int, int], str], node: int, *, forward: bool) -> set[int]:
    """Return the nodes that a path leads to from `node`, or from which one leads to it."""
    values = {node}
    for _, (start, end) in product(range(3), edges):
        near, far = (start, end) if forward else (end, start)
        if near in values:
            values.add(far)
    return values


def _longest(edges: dict[tuple[int, int], str], weights: dict[str, float]) -> float:
    """Return the largest sum of weights on a path from 0 to 3; 0 where there is none."""
    best = {0: 0.0, 1: -np.inf, 2: -np.inf, 3: -np.inf}
    for end in (1, 2, 3):
        for (start, stop), kind in edges.items():
            if stop == end:
                best[end] = max(best[end], best[start] + weights.get(kind, 0.0))
    return float(max(best[3], 0.0))
