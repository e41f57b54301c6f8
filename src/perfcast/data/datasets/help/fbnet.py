"""Latencies of 5,000 networks of FBNet's search space on 27 devices, measured by HELP's authors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.datasets.help.latency_rows import build_space
from perfcast.data.standardized import Standardized
from perfcast.schema.table import Column, Kind, Role
from perfcast.utils.errors import UserError

LAYERS = tuple(f"block_{number:02d}" for number in range(1, 23))
BLOCKS = ("k3_e1", "k3_e1_g2", "k3_e3", "k3_e6", "k5_e1", "k5_e1_g2", "k5_e3", "k5_e6", "skip")
"""Kernel size, expansion and groups of an inverted residual block; skip is the identity."""

COLUMNS = tuple(
    Column(name, Kind.CATEGORICAL, Role.FEATURE, "blocks", meaning=f"block of layer {int(name[6:])} of 22")
    for name in LAYERS
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the latencies; options and errors as in `build_space`. Source: Wu et al., arXiv 1812.03443."""
    return build_space("fbnet", raw, options, COLUMNS, encode_networks)


def encode_networks(content: Any) -> pd.DataFrame:
    """Return the blocks of every network. Raises: UserError when a network does not have 22 known blocks."""
    networks = content.get("arch") if isinstance(content, dict) else None
    rows = [network.get("arch_str") if isinstance(network, dict) else None for network in networks or [None]]
    for row in rows:
        if not isinstance(row, list) or len(row) != len(LAYERS) or not set(row) <= set(BLOCKS):
            raise UserError(
                "a network must have 22 known blocks", f"found {str(row)[:80]!r}", "ingest source 'help' again"
            )
    return pd.DataFrame(rows, columns=list(LAYERS), dtype="str")
