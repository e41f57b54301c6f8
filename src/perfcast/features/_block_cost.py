"""What inverted residual blocks cost: multiply-adds, parameters and bytes moved, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd

from perfcast.features._derive import Pair, feature
from perfcast.schema import Column, Tag


@dataclass(frozen=True)
class Cost:
    """Multiply-adds (MFLOP), parameters (1000), and numbers written by the block's convolutions (1000)."""

    mflop: float
    kparameters: float
    kactivations: float


NOTHING = Cost(0.0, 0.0, 0.0)


@cache
def inverted_residual(  # noqa: PLR0917 - the order of a block's definition
    inputs: int, outputs: int, kernel: int, expansion: int, groups: int, side: float, stride: int
) -> Cost:
    """Return what a block costs: 1 x 1 to expansion x inputs channels, k x k of each channel, 1 x 1 to outputs.

    `side` is that of the block's input image. Source: Sandler et al., MobileNetV2, arXiv 1801.04381, table 1.
    """
    middle, after = inputs * expansion, side / stride
    first = inputs * middle / groups if expansion > 1 or groups > 1 else 0
    depthwise, last = kernel**2 * middle, middle * outputs / groups
    flops = first * side**2 + (depthwise + last) * after**2
    written = (middle * side**2 if first else 0) + (middle + outputs) * after**2
    return Cost(flops / 1e6, (first + depthwise + last) / 1e3, written / 1e3)


def totals(
    costs: Callable[[tuple[object, ...]], list[list[Cost]]], frame: pd.DataFrame, names: Sequence[str], stages: int
) -> list[Pair]:
    """Return the sums over a network's blocks, and those of each of its `stages`, for rows of a frame.

    `costs` gives the blocks of each stage, of one network's values in the columns `names`.
    """
    networks = frame[list(names)].drop_duplicates()
    rows = [_sums(costs(tuple(network))) for network in networks.itertuples(index=False)]
    columns = _columns(stages)
    made = pd.DataFrame(rows, columns=[column.name for column in columns], dtype=float)
    keyed = pd.concat([networks.reset_index(drop=True), made], axis=1)
    found = frame[list(names)].merge(keyed, on=list(names), how="left").set_axis(frame.index)
    return [(column, found[column.name]) for column in columns]


def _sums(stages: list[list[Cost]]) -> list[float]:
    blocks = [cost for stage in stages for cost in stage]
    whole = [sum(getattr(cost, name) for cost in blocks) for name in ("mflop", "kparameters", "kactivations")]
    return [*whole, float(sum(cost.mflop > 0 for cost in blocks)), *(sum(cost.mflop for cost in s) for s in stages)]


def _columns(stages: int) -> list[Column]:
    group = "architecture"
    return [
        feature("mflop", group, "MFLOP", "multiply-adds of the blocks", 0, tags=(Tag.SCALING,)),
        feature("kparameters", group, "1000", "parameters of the blocks", 0),
        feature("kactivations", group, "1000", "numbers that the blocks' convolutions write", 0),
        feature("blocks", group, "", "blocks that are there", 0),
        *(feature(f"mflop_stage_{n + 1}", group, "MFLOP", f"multiply-adds of stage {n + 1}", 0) for n in range(stages)),
    ]
