"""What inverted residual blocks cost: multiply-adds, parameters and numbers written, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cache

import pandas as pd

from perfcast.features.feature_math import Pair, feature
from perfcast.schema.table import Column, Tag


@dataclass(frozen=True)
class Cost:
    """Multiply-adds of 1 x 1 and of depthwise convolutions (MFLOP), parameters and numbers written (1000 of each)."""

    pointwise: float
    depthwise: float
    parameters: float
    written: float


NOTHING = Cost(0.0, 0.0, 0.0, 0.0)
_PARTS = {
    "pointwise": ("mflop_pointwise", "MFLOP", "multiply-adds of 1 x 1 convolutions"),
    "depthwise": ("mflop_depthwise", "MFLOP", "multiply-adds of depthwise convolutions"),
    "parameters": ("kparameters", "1000", "parameters"),
    "written": ("kwritten", "1000", "numbers that convolutions write"),
}


@cache
def inverted_residual(  # noqa: PLR0917 - the order of a block's definition
    inputs: int, outputs: int, kernel: int, expansion: int, groups: int, side: float, stride: int
) -> Cost:
    """Return what a block costs: 1 x 1 to expansion x inputs channels, k x k of each channel, 1 x 1 to outputs.

    `side` is that of the block's input image. Source: Sandler et al., MobileNetV2, arXiv 1801.04381, table 1.
    """
    middle, after = inputs * expansion, side / stride
    first = inputs * middle / groups
    depthwise, last = kernel**2 * middle, middle * outputs / groups
    return Cost(
        pointwise=(first * side**2 + last * after**2) / 1e6,
        depthwise=depthwise * after**2 / 1e6,
        parameters=(first + depthwise + last) / 1e3,
        written=(middle * side**2 + (middle + outputs) * after**2) / 1e3,
    )


def totals(
    block_costs: Callable[[tuple[object, ...]], list[list[Cost]]],
    frame: pd.DataFrame,
    names: Sequence[str],
    stages: int,
) -> list[Pair]:
    """Return the sums over a network's blocks, and over those of each of its `stages`, for rows of a frame.

    `costs` gives the blocks of each stage, of one network's values in the columns `names`.
    """
    networks = frame[list(names)].drop_duplicates()
    rows = [_sums(block_costs(tuple(network))) for network in networks.itertuples(index=False)]
    columns = _columns(stages)
    made = pd.DataFrame(rows, columns=[column.name for column in columns], dtype=float)
    keyed = pd.concat([networks.reset_index(drop=True), made], axis=1)
    joined = frame[list(names)].merge(keyed, on=list(names), how="left").set_axis(frame.index)
    return [(column, joined[column.name]) for column in columns]


def _sums(stages: list[list[Cost]]) -> list[float]:
    by_stage = [[sum(values) for values in zip(*map(astuple, stage), strict=True)] or [0.0] * 4 for stage in stages]
    whole = [sum(values) for values in zip(*by_stage, strict=True)]
    blocks = sum(cost is not NOTHING for stage in stages for cost in stage)
    return [whole[0] + whole[1], *whole, float(blocks), *(value for stage in by_stage for value in stage)]


def _columns(stages: int) -> list[Column]:
    descriptions = [
        feature(f"{name}_{stage}", "stages", unit, f"{meaning} in stage {stage}", 0)
        for stage in range(1, stages + 1)
        for name, unit, meaning in _PARTS.values()
    ]
    return [
        feature("mflop", "cost", "MFLOP", "multiply-adds of the blocks", 0, tags=(Tag.SCALING,)),
        *(feature(name, "cost", unit, f"{meaning} of the blocks", 0) for name, unit, meaning in _PARTS.values()),
        feature("blocks", "cost", "", "blocks that are there", 0),
        *descriptions,
    ]
