"""Latencies of the 15,625 cells of NAS-Bench-201 on 27 devices, measured by HELP's authors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.datasets.help.latency_rows import build_space
from perfcast.data.standardized import Standardized
from perfcast.schema.table import Column, Kind, Role
from perfcast.utils.errors import UserError

EDGES = ("op_0_1", "op_0_2", "op_1_2", "op_0_3", "op_1_3", "op_2_3")
"""Edges of a cell by its two nodes, in the order of the text; node 0 is the input and node 3 the output."""

_REMEDY = "ingest source 'help' again"
OPERATIONS = ("none", "skip_connect", "avg_pool_3x3", "nor_conv_1x1", "nor_conv_3x3")

COLUMNS = tuple(
    Column(
        name,
        Kind.CATEGORICAL,
        Role.FEATURE,
        "cell",
        meaning=f"operation on the edge from node {name[3]} to node {name[5]} of the cell",
    )
    for name in EDGES
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the latencies; options and errors as in `build_space`. Source: Dong and Yang, arXiv 2001.00326."""
    return build_space("nasbench201", raw, options, COLUMNS, encode_cells)


def encode_cells(content: Any) -> pd.DataFrame:
    """Return the operations of every cell, ordered by position, from the mapping of text to position.

    A text |op~0|+|op~0|op~1|+|op~0|op~1|op~2| lists the incoming edges of each node with their origins.

    Raises:
        UserError: The content is not such a mapping.
    """
    if not isinstance(content, dict) or sorted(content.values()) != list(range(len(content))):
        raise UserError("str_arch2idx.pt must map cells to positions from 0 on", "it holds something else", _REMEDY)
    rows = [_parse_operations(text) for text, _ in sorted(content.items(), key=lambda item: item[1])]
    return pd.DataFrame(rows, columns=list(EDGES), dtype="str")


def _parse_operations(text: Any) -> list[str]:
    edges = [edge.split("~") for node in str(text).split("+") for edge in node.strip("|").split("|")]
    origins = [edge[-1] for edge in edges]
    if origins != [name[3] for name in EDGES] or any(edge[0] not in OPERATIONS for edge in edges):
        raise UserError("a cell must have six known operations in order", f"found {str(text)[:80]!r}", _REMEDY)
    return [edge[0] for edge in edges]
