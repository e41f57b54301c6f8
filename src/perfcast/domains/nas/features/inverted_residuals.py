"""Work of a network of inverted residual blocks, and of an FBNet network, from the block chosen for its 22 layers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cache

from perfcast.domains import read_columns
from perfcast.features.feature_math import append, derive_distinct, require
from perfcast.schema.table import Column, Table

REQUIRES = tuple(f"block_{number:02d}" for number in range(1, 23))

STAGES = (
    (16, 1, 1),
    (24, 4, 1),
    (32, 4, 2),
    (64, 4, 2),
    (112, 4, 1),
    (184, 4, 2),
    (352, 1, 1),
)
"""Channels, layers and first stride of each stage: FBNet's (Wu et al., arXiv 1812.03443, table 1) for images of 32 px,
which are halved twice less. The measured latencies that add up block by block, of pixel3, agree with these strides."""

_TOTALS = read_columns(__package__, "columns.csv", "inverted_residuals")
_KINDS = read_columns(__package__, "columns.csv", "block_kinds")

SIDE = 32
STEM = 16
"""Side of the image at the first stage, and channels that it receives."""


@dataclass(frozen=True)
class Cost:
    """Multiply-adds of 1 x 1 and of depthwise convolutions (MFLOP), parameters and numbers written (1000 of each)."""

    pointwise: float
    depthwise: float
    parameters: float
    written: float


NO_BLOCK = Cost(0.0, 0.0, 0.0, 0.0)


@cache
def inverted_residual(  # noqa: PLR0917 - the order of a block's definition
    inputs: int,
    outputs: int,
    kernel: int,
    expansion: int,
    groups: int,
    side: float,
    stride: int,
) -> Cost:
    """Return the cost of a block: 1 x 1 to expansion x inputs channels, k x k of each channel, 1 x 1 to outputs.

    `side` is that of the block's input image. Source: Sandler et al., MobileNetV2, arXiv 1801.04381, table 1.
    """
    middle = inputs * expansion
    after = side / stride
    first = inputs * middle / groups
    depthwise = kernel**2 * middle
    last = middle * outputs / groups
    return Cost(
        pointwise=(first * side**2 + last * after**2) / 1e6,
        depthwise=depthwise * after**2 / 1e6,
        parameters=(first + depthwise + last) / 1e3,
        written=(middle * side**2 + (middle + outputs) * after**2) / 1e3,
    )


def append_totals(
    table: Table,
    names: Sequence[str],
    columns: Sequence[Column],
    stage_costs: Callable[[tuple[object, ...]], list[list[Cost]]],
) -> Table:
    """Append the sums over a network's blocks, and over those of each of its stages, as `columns` declare them.

    `stage_costs` returns the costs of the blocks of each stage, from a network's values in the columns `names`.
    Raises: ValueError when one of these columns is missing.
    """

    def derive_values(network: tuple[object, ...]) -> dict[str, float]:
        totals = _totals(stage_costs(network))
        return {column.name: value for column, value in zip(columns, totals, strict=True)}

    values = derive_distinct(require(table, names), names, columns, derive_values)
    return append(table, columns, values, logs=["mflop", "kwritten"])


def _totals(stages: list[list[Cost]]) -> list[float]:
    """Return the multiply-adds, the four amounts of `Cost`, the blocks, and the four amounts of every stage."""
    by_stage = [[sum(values) for values in zip(*map(astuple, stage), strict=True)] or [0.0] * 4 for stage in stages]
    whole = [sum(values) for values in zip(*by_stage, strict=True)]
    blocks = sum(cost is not NO_BLOCK for stage in stages for cost in stage)
    totals = [whole[0] + whole[1], *whole, float(blocks)]
    for stage in by_stage:
        totals += stage
    return totals


def fbnet_costs(network: tuple[object, ...]) -> list[list[Cost]]:
    """Return the costs of the blocks of each stage, by their names such as k3_e6, k5_e1_g2 and skip."""
    names = list(network)
    stages = []
    inputs = STEM
    side = float(SIDE)
    for width, layers, first in STAGES:
        stage = []
        for layer in range(layers):
            stride = 1 if layer else first
            stage.append(_block_cost(str(names.pop(0)), inputs, width, side, stride))
            inputs = width
            side = side / stride
        stages.append(stage)
    return stages


def derive(table: Table) -> Table:
    """Append the sums over a network's blocks, whole and by stage, and the number of blocks of each kind.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    blocks = require(table, REQUIRES)[list(REQUIRES)]
    # the name of a count is n_ and the kind of its blocks, any other block is the identity
    counts = {column.name: (blocks == column.name[2:]).sum(axis=1) for column in _KINDS}
    return append(append_totals(table, REQUIRES, _TOTALS, fbnet_costs), _KINDS, counts)


def _block_cost(name: str, inputs: int, outputs: int, side: float, stride: int) -> Cost:
    match = re.fullmatch(r"k(\d)_e(\d)(?:_g(\d))?", name)
    if not match:
        return NO_BLOCK
    kernel, expansion, groups = (int(number or 1) for number in match.groups())
    return inverted_residual(inputs, outputs, kernel, expansion, groups, side, stride)
