"""Work of an FBNet network, from the block chosen for each of its 22 layers."""

from __future__ import annotations

import re

from perfcast.features.block_cost import NOTHING, Cost, inverted_residual, totals
from perfcast.features.feature_math import append, declared, feature, logs, require
from perfcast.schema.table import Column, Table

REQUIRES: tuple[str, ...] = tuple(f"block_{number:02d}" for number in range(1, 23))

STAGES = ((16, 1, 1), (24, 4, 1), (32, 4, 2), (64, 4, 2), (112, 4, 1), (184, 4, 2), (352, 1, 1))
"""Channels, layers and first stride of each stage: FBNet's (Wu et al., arXiv 1812.03443, table 1) for images of 32 px,
which are halved twice less. The measured latencies that add up block by block, of pixel3, agree with these strides."""

KINDS = ("k3_e1", "k3_e1_g2", "k3_e3", "k3_e6", "k5_e1", "k5_e1_g2", "k5_e3", "k5_e6")
"""Blocks by kernel size, expansion and groups; any other is the identity."""

SIDE, STEM = 32, 16
"""Side of the image at the first stage, and channels that it receives."""


def blocks_of(network: tuple[object, ...]) -> list[list[Cost]]:
    """Return what the blocks of each stage cost, by their names such as k3_e6, k5_e1_g2 and skip."""
    names, stages = list(network), []
    inputs, side = STEM, float(SIDE)
    for width, layers, first in STAGES:
        stage = []
        for layer in range(layers):
            stride = 1 if layer else first
            stage.append(_cost(str(names.pop(0)), inputs, width, side, stride))
            inputs, side = width, side / stride
        stages.append(stage)
    return stages


def derive(table: Table) -> Table:
    """Append the sums over a network's blocks, whole and by stage.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    extended = append(table, totals(blocks_of, frame, REQUIRES, len(STAGES)))
    extended = append(extended, logs(declared(extended, ["mflop", "kwritten"])))
    return append(extended, [(_count(kind), (frame[list(REQUIRES)] == kind).sum(axis=1)) for kind in KINDS])


def _count(kind: str) -> Column:
    return feature(f"n_{kind}", "kinds", "", f"blocks {kind} of the network", 0, len(REQUIRES))


def _cost(name: str, inputs: int, outputs: int, side: float, stride: int) -> Cost:
    stages = re.fullmatch(r"k(\d)_e(\d)(?:_g(\d))?", name)
    if not stages:
        return NOTHING
    kernel, expansion, groups = (int(number or 1) for number in stages.groups())
    return inverted_residual(inputs, outputs, kernel, expansion, groups, side, stride)
