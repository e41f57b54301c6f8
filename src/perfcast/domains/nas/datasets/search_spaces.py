"""Search spaces of HELP's networks, one dataset each: their columns and the encoding of their architectures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.domains.nas.datasets.latency_rows import build_space
from perfcast.schema.table import Column, Kind, Role
from perfcast.utils.errors import UserError

_REMEDY = "ingest source 'help' again"

FBNET_LAYERS = tuple(f"block_{number:02d}" for number in range(1, 23))
FBNET_BLOCKS = ("k3_e1", "k3_e1_g2", "k3_e3", "k3_e6", "k5_e1", "k5_e1_g2", "k5_e3", "k5_e6", "skip")
"""Kernel size, expansion and groups of an inverted residual block; skip is the identity."""

CELL_EDGES = ("op_0_1", "op_0_2", "op_1_2", "op_0_3", "op_1_3", "op_2_3")
"""Edges of a cell by its two nodes, in the order of the text; node 0 is the input and node 3 the output."""

CELL_OPERATIONS = ("none", "skip_connect", "avg_pool_3x3", "nor_conv_1x1", "nor_conv_3x3")

_STAGES, _MAX_LAYERS = 5, 4
OFA_LAYERS = tuple(f"layer_{stage}_{layer}" for stage in range(1, _STAGES + 1) for layer in range(1, _MAX_LAYERS + 1))
_ABSENT = "absent"


def build_fbnet(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize 5,000 networks of FBNet on 27 devices; see `build_space`. Source: Wu et al., arXiv 1812.03443."""
    columns = [_word(name, "blocks", f"block of layer {int(name[6:])} of 22") for name in FBNET_LAYERS]
    return build_space("fbnet", raw, options, columns, encode_fbnet)


def build_nasbench201(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize all 15,625 cells on 27 devices; see `build_space`. Source: Dong and Yang, arXiv 2001.00326."""
    meaning = "operation on the edge from node {} to node {} of the cell"
    columns = [_word(name, "cell", meaning.format(name[3], name[5])) for name in CELL_EDGES]
    return build_space("nasbench201", raw, options, columns, encode_cells)


def build_ofa(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize 5,000 once-for-all networks on 12 GPUs; see `build_space`. Source: Cai et al., arXiv 1908.09791."""
    meaning = "kernel and expansion of layer {} of stage {}; {} below that depth"
    columns = [
        Column("resolution", Kind.NUMERICAL, Role.FEATURE, "cost", "px", "side length of the input image", low=1),
        *(_word(name, "layers", meaning.format(name[8], name[6], _ABSENT)) for name in OFA_LAYERS),
    ]
    return build_space("ofa", raw, options, columns, encode_ofa)


def _word(name: str, group: str, meaning: str) -> Column:
    return Column(name, Kind.CATEGORICAL, Role.FEATURE, group, meaning=meaning)


def encode_fbnet(content: Any) -> pd.DataFrame:
    """Return the blocks of every network. Raises: UserError when a network does not have 22 known blocks."""
    networks = content.get("arch") if isinstance(content, dict) else None
    rows = [network.get("arch_str") if isinstance(network, dict) else None for network in networks or [None]]
    for row in rows:
        if not isinstance(row, list) or len(row) != len(FBNET_LAYERS) or not set(row) <= set(FBNET_BLOCKS):
            raise UserError("a network must have 22 known blocks", f"found {str(row)[:80]!r}", _REMEDY)
    return pd.DataFrame(rows, columns=list(FBNET_LAYERS), dtype="str")


def encode_cells(content: Any) -> pd.DataFrame:
    """Return the operations of every cell, ordered by position, from the mapping of text to position.

    A text |op~0|+|op~0|op~1|+|op~0|op~1|op~2| lists the incoming edges of each node with their origins.

    Raises:
        UserError: The content is not such a mapping.
    """
    if not isinstance(content, dict) or sorted(content.values()) != list(range(len(content))):
        raise UserError("str_arch2idx.pt must map cells to positions from 0 on", "it holds something else", _REMEDY)
    rows = [_parse_operations(text) for text, _ in sorted(content.items(), key=lambda item: item[1])]
    return pd.DataFrame(rows, columns=list(CELL_EDGES), dtype="str")


def encode_ofa(content: Any) -> pd.DataFrame:
    """Return the resolution and the layers of every network. Raises: UserError when a network lacks one."""
    networks = content.get("arch") if isinstance(content, dict) else None
    rows = [_encode_layers(network) for network in networks or [None]]
    return pd.DataFrame(rows, columns=["resolution", *OFA_LAYERS]).astype(dict.fromkeys(OFA_LAYERS, "str"))


def _parse_operations(text: Any) -> list[str]:
    edges = [edge.split("~") for node in str(text).split("+") for edge in node.strip("|").split("|")]
    origins = [edge[-1] for edge in edges]
    if origins != [name[3] for name in CELL_EDGES] or any(edge[0] not in CELL_OPERATIONS for edge in edges):
        raise UserError("a cell must have six known operations in order", f"found {str(text)[:80]!r}", _REMEDY)
    return [edge[0] for edge in edges]


def _encode_layers(network: Any) -> list[Any]:
    lengths = {"ks": len(OFA_LAYERS), "e": len(OFA_LAYERS), "d": _STAGES}
    whole = isinstance(network, dict) and isinstance(network.get("r"), int)
    if not whole or any(not isinstance(network.get(key), list) or len(network[key]) != n for key, n in lengths.items()):
        raise UserError(
            "a network must have 20 kernels and expansions, 5 depths and a resolution",
            f"found {str(network)[:80]!r}",
            _REMEDY,
        )
    texts = [f"k{kernel}_e{expansion}" for kernel, expansion in zip(network["ks"], network["e"], strict=True)]
    used = [layer < network["d"][stage] for stage in range(_STAGES) for layer in range(_MAX_LAYERS)]
    return [float(network["r"]), *(text if present else _ABSENT for text, present in zip(texts, used, strict=True))]
