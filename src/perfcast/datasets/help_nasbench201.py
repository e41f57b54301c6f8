"""Latencies of the 15,625 cells of NAS-Bench-201 on 27 devices, as HELP's authors measured them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.datasets._help_rows import build_space
from perfcast.datasets.base import Standardized
from perfcast.errors import UserError
from perfcast.schema import Column, Kind, Role

EDGES = ("op_0_1", "op_0_2", "op_1_2", "op_0_3", "op_1_3", "op_2_3")
"""Edges of a cell from node to node, 0 its input and 3 its output, in the order of the architecture's text."""

OPERATIONS = ("none", "skip_connect", "avg_pool_3x3", "nor_conv_1x1", "nor_conv_3x3")

COLUMNS = tuple(
    Column(
        name,
        Kind.CATEGORICAL,
        Role.FEATURE,
        "cell",
        meaning=f"operation on the edge of the cell from node {name[3]} to node {name[5]}",
    )
    for name in EDGES
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardise the latencies; options and errors as of `build_space`. Source: Dong and Yang, arXiv 2001.00326."""
    return build_space("nasbench201", raw, options, COLUMNS, encode)


def encode(content: Any) -> pd.DataFrame:
    """Return the operations of every cell from the file's mapping of a cell's text to its position.

    A text is |op~0|+|op~0|op~1|+|op~0|op~1|op~2|: per node its incoming edges, by the node they come from.
    Raises: UserError when it is something else.
    """
    if not isinstance(content, dict) or sorted(content.values()) != list(range(len(content))):
        raise UserError("str_arch2idx.pt must map cells to positions from 0 on", "it does not", "ingest again")
    rows = [_operations(text) for text, _ in sorted(content.items(), key=lambda item: item[1])]
    return pd.DataFrame(rows, columns=list(EDGES), dtype="str")


def _operations(text: Any) -> list[str]:
    parts = [edge.split("~") for node in str(text).split("+") for edge in node.strip("|").split("|")]
    sources = [part[-1] for part in parts]
    if sources != [name[3] for name in EDGES] or any(part[0] not in OPERATIONS for part in parts):
        raise UserError("a cell must have six known operations in order", f"found {str(text)[:80]!r}", "ingest again")
    return [part[0] for part in parts]
