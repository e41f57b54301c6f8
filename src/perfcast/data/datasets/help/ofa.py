"""Latencies of 5,000 networks of the once-for-all search space on 12 GPUs, measured by HELP's authors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.datasets.help.latency_rows import build_space
from perfcast.data.standardized import Standardized
from perfcast.schema.table import Column, Kind, Role
from perfcast.utils.errors import UserError

STAGES, MAX_LAYERS = 5, 4
LAYERS = tuple(f"layer_{stage}_{layer}" for stage in range(1, STAGES + 1) for layer in range(1, MAX_LAYERS + 1))
ABSENT = "absent"

COLUMNS = (
    Column("resolution", Kind.NUMERICAL, Role.FEATURE, "cost", "px", "side length of the input image", low=1),
    *(
        Column(
            name,
            Kind.CATEGORICAL,
            Role.FEATURE,
            "layers",
            meaning=f"kernel and expansion of layer {name[8]} of stage {name[6]}; {ABSENT} below that depth",
        )
        for name in LAYERS
    ),
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the latencies; options and errors as in `build_space`. Source: Cai et al., arXiv 1908.09791."""
    return build_space("ofa", raw, options, COLUMNS, encode_networks)


def encode_networks(content: Any) -> pd.DataFrame:
    """Return the resolution and the layers of every network. Raises: UserError when a network lacks one."""
    networks = content.get("arch") if isinstance(content, dict) else None
    rows = [_encode_layers(network) for network in networks or [None]]
    return pd.DataFrame(rows, columns=["resolution", *LAYERS]).astype(dict.fromkeys(LAYERS, "str"))


def _encode_layers(network: Any) -> list[Any]:
    lengths = {"ks": len(LAYERS), "e": len(LAYERS), "d": STAGES}
    whole = isinstance(network, dict) and isinstance(network.get("r"), int)
    if not whole or any(not isinstance(network.get(key), list) or len(network[key]) != n for key, n in lengths.items()):
        raise UserError(
            "a network must have 20 kernels and expansions, 5 depths and a resolution",
            f"found {str(network)[:80]!r}",
            "ingest source 'help' again",
        )
    texts = [f"k{kernel}_e{expansion}" for kernel, expansion in zip(network["ks"], network["e"], strict=True)]
    used = [layer < network["d"][stage] for stage in range(STAGES) for layer in range(MAX_LAYERS)]
    return [float(network["r"]), *(text if present else ABSENT for text, present in zip(texts, used, strict=True))]
