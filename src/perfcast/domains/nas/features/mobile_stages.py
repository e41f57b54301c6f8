"""Work of a once-for-all network, from its resolution and the layers of its five stages."""

from __future__ import annotations

import re

from perfcast.domains import read_columns
from perfcast.domains.nas.features.inverted_residuals import (
    Cost,
    append_totals,
    inverted_residual,
)
from perfcast.schema.table import Table

STAGES = ((24, 2), (40, 2), (80, 2), (112, 1), (160, 2))
"""Channels and first stride of each stage (Cai et al., arXiv 1908.09791: MobileNetV3 with width 1)."""

LAYERS = 4
STEM = 16
"""Largest number of layers of a stage; channels before the first one, at half of the image's side."""

_STAGE_LAYERS = [f"layer_{stage + 1}_{layer + 1}" for stage in range(len(STAGES)) for layer in range(LAYERS)]
REQUIRES = ("resolution", *_STAGE_LAYERS)
_TOTALS = read_columns(__package__, "columns.csv", "mobile_stages")


def layer_costs(network: tuple[object, ...]) -> list[list[Cost]]:
    """Return the costs of the layers of each stage, by the image's side and names such as k3_e6; others are absent."""
    names = [str(name) for name in network[1:]]
    stages = []
    inputs = STEM
    side = float(str(network[0])) / 2
    for index, (width, first) in enumerate(STAGES):
        stage: list[Cost] = []
        for name in names[LAYERS * index : LAYERS * (index + 1)]:
            numbers = re.fullmatch(r"k(\d)_e(\d)", name)
            if numbers:
                stride = 1 if stage else first
                stage.append(
                    inverted_residual(
                        inputs,
                        width,
                        int(numbers[1]),
                        int(numbers[2]),
                        1,
                        side,
                        stride,
                    )
                )
                inputs = width
                side = side / stride
        stages.append(stage)
    return stages


def derive(table: Table) -> Table:
    """Append the sums over a network's layers, whole and by stage.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    return append_totals(table, REQUIRES, _TOTALS, layer_costs)
