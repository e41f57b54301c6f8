"""HELP's tables, one per search space of networks: a row per device and architecture, its latency the target."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame
from perfcast.domains import read_columns
from perfcast.domains.nas.sources.help import (
    ARCHITECTURES,
    REFERENCES,
    latency_file,
    list_devices,
)
from perfcast.schema.table import build_table
from perfcast.sources.bounded_files import check_zip
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

SOURCE = "help"
PUBLISHED_SUBSET = "published_subset"
NEAR_ZERO = 0.05
"""Share of a device's median latency below which a latency is no inference: the output of such cells does not depend on
their input, and some devices do not compute them."""
_REMEDY = "ingest source 'help' again"
FBNET_LAYERS = tuple(f"block_{number:02d}" for number in range(1, 23))
FBNET_BLOCKS = (
    "k3_e1",
    "k3_e1_g2",
    "k3_e3",
    "k3_e6",
    "k5_e1",
    "k5_e1_g2",
    "k5_e3",
    "k5_e6",
    "skip",
)
"""Kernel size, expansion and groups of an inverted residual block; skip is the identity."""

CELL_EDGES = ("op_0_1", "op_0_2", "op_1_2", "op_0_3", "op_1_3", "op_2_3")
"""Edges of a cell by its two nodes, in the order of the text; node 0 is the input and node 3 the output."""

CELL_OPERATIONS = ("none", "skip_connect", "avg_pool_3x3", "nor_conv_1x1", "nor_conv_3x3")

_STAGES = 5
_MAX_LAYERS = 4
OFA_LAYERS = tuple(f"layer_{stage}_{layer}" for stage in range(1, _STAGES + 1) for layer in range(1, _MAX_LAYERS + 1))
_ABSENT = "absent"


_POOL = {"fbnet": 4000, "nasbench201": 900, "ofa": 4000}
"""Architectures of the authors' pool by search space, at most four fifths of all."""
_QUERIES = 1000
"""Architectures after the pool that test devices are evaluated on."""
_TRIMMED = 0.1
"""Share of the fastest and of the slowest queries that is not evaluated."""


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the latencies of a search space, whose name is the option `space`.

    fbnet has 5,000 networks on 27 devices (Wu et al., arXiv 1812.03443), nasbench201 all 15,625 cells on 27 devices
    (Dong and Yang, arXiv 2001.00326), ofa 5,000 once-for-all networks on 12 GPUs (Cai et al., arXiv 1908.09791).

    Raises:
        UserError: A file is absent or invalid.
    """
    space = options["space"]
    folder = raw[SOURCE]
    devices = list_devices(space)
    architectures = _ENCODERS[space](read_torch(folder / space / ARCHITECTURES[space]))
    count = len(architectures)
    references = _read_positions(folder / space / REFERENCES, count)
    frames = []
    rejections = []
    for device, facts in devices.items():
        file = latency_file(space, device)
        latency = _read_latencies(folder / file, count)
        reasons = _find_reasons(latency)
        for row in np.flatnonzero(reasons != ""):
            detail = f"{latency[row]:.6g} ms"
            rejections.append(Rejection(SOURCE, file, int(row) + 1, str(reasons[row]), detail))
        good = np.flatnonzero(reasons == "")
        usable = np.where(reasons == "", latency, np.nan)
        subsets = _assign_subsets(facts[space], usable, references, _POOL[space])
        columns = {
            "position": good,
            "device": device,
            "device_kind": facts["kind"],
            "device_model": facts["model"],
            "batch": float(facts["batch"] or "nan"),
            "latency_ms": latency[good],
            PUBLISHED_SUBSET: subsets[good],
            "reference": np.isin(good, references).astype(float),
            "source_file": file,
            "source_line": good + 1.0,
        }
        frames.append(pd.DataFrame(columns))
    rows = pd.concat(frames, ignore_index=True)
    numbers = pd.Series(np.arange(count), dtype="int64").astype("str").str.zfill(5)
    described = architectures.assign(architecture=f"{space}-" + numbers, number=numbers)
    encoded = described.iloc[rows["position"].to_numpy()].reset_index(drop=True)
    result_id = rows["device"] + "/" + encoded["number"]
    frame = pd.concat([rows, encoded.drop(columns="number")], axis=1).assign(result_id=result_id)
    dataset = f"{SOURCE}_{space}"
    distinct = rows.groupby("device", sort=True)["latency_ms"].nunique()
    return Standardized(
        table=build_table(dataset, frame, read_columns(__package__, "columns.csv", dataset)),
        rejected=build_rejected_frame(rejections),
        rows_in=count * len(devices),
        quality={
            "architectures": count,
            "devices": len(devices),
            "distinct_latencies": {str(device): int(number) for device, number in distinct.items()},
        },
    )


def _assign_subsets(use: str, latency: np.ndarray, references: Sequence[int], pool: int) -> np.ndarray:
    """Return the subset of each architecture on a device that the authors use for `use`.

    Training devices use the pool, the first architectures, and the references. Other devices train on the references
    alone. Validation devices are evaluated on the pool. Test devices are evaluated on the queries after it.
    A reference is never evaluated, although the authors left one reference among their test architectures.

    Shapes: latency (architectures,) -> (architectures,) object.
    Units: latency ms, NaN where it was quarantined.
    """
    count = len(latency)
    position = np.arange(count)
    first_query = min(pool, count * 4 // 5)
    subsets = np.full(count, "unused", dtype=object)
    if use == "unused":
        return subsets
    if use == "test":
        is_query = (position >= first_query) & (position < first_query + _QUERIES)
        queries = np.flatnonzero(is_query)
        order = queries[np.argsort(latency[queries], kind="stable")]
        first = int(len(order) * _TRIMMED)
        last = int(len(order) * (1 - _TRIMMED))
        subsets[order[first:last]] = "test"
    else:
        subsets[position < first_query] = use
    subsets[list(references)] = "train"
    return subsets


def _find_reasons(latency: np.ndarray) -> np.ndarray:
    """Return the reason to quarantine each latency, "" for a valid one. Shapes: (n,) -> (n,) object."""
    usable = np.isfinite(latency) & (latency > 0)
    middle = np.median(latency[usable]) if usable.any() else 0.0
    reasons = np.where(usable, "", "not_a_positive_number").astype(object)
    reasons[usable & (latency < NEAR_ZERO * middle)] = "near_zero_latency"
    return reasons


def read_torch(path: Path) -> Any:
    """Return the content of a .pt file of numbers, texts, lists, dictionaries and NumPy's 64-bit integers.

    Nothing in the file is executed: `weights_only` blocks every other name.
    Raises:
        UserError: The file is absent or broken, or names anything else.
    """
    import torch.serialization

    if not path.is_file():
        raise UserError("a PyTorch file must exist", f"there is no {path.name}", _REMEDY)
    check_zip(
        path,
        "a PyTorch file",
        lambda name: name.endswith("/data.pkl"),
        size_limits.TORCH,
        remedy=_REMEDY,
    )
    scalar = np.int64(0).__reduce__()[0]
    integer = type(np.dtype("int64"))
    known = [(scalar, f"numpy.{package}.multiarray.scalar") for package in ("core", "_core")]
    safe: list[Any] = [*known, np.dtype, integer, codecs.encode]
    with warnings.catch_warnings(action="ignore"), torch.serialization.safe_globals(safe):
        try:
            return torch.load(path, weights_only=True, map_location="cpu")
        except Exception as error:  # torch raises many kinds of errors
            fact = f"is broken ({type(error).__name__})"
            with suppress(Exception):
                if names := torch.serialization.get_unsafe_globals_in_checkpoint(path):
                    fact = f"names {', '.join(sorted(names))}"
    requirement = "a PyTorch file from outside must hold plain values only"
    raise UserError(requirement, f"{path.name} {fact}", "files that contain code are never opened")


def _read_latencies(path: Path, count: int) -> np.ndarray:
    """Return the latencies of a device in ms, NaN where an entry is not a number. Raises: UserError."""
    content = read_torch(path)
    if not isinstance(content, list) or len(content) != count:
        fact = f"found {len(content)}" if isinstance(content, list) else f"found {type(content).__name__}"
        raise UserError(f"{path.name} must be a list of {count} latencies", fact, _REMEDY)
    return np.array([float(value) if isinstance(value, int | float) else np.nan for value in content])


def _read_positions(path: Path, count: int) -> list[int]:
    content = read_torch(path)
    if not isinstance(content, list) or not all(isinstance(value, int) and 0 <= value < count for value in content):
        requirement = f"{path.name} must be a list of positions from 0 to {count - 1}"
        raise UserError(requirement, "it holds something else", _REMEDY)
    return list(content)


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
        raise UserError(
            "str_arch2idx.pt must map cells to positions from 0 on",
            "it holds something else",
            _REMEDY,
        )
    rows = [_parse_operations(text) for text, _ in sorted(content.items(), key=lambda item: item[1])]
    return pd.DataFrame(rows, columns=list(CELL_EDGES), dtype="str")


def encode_ofa(content: Any) -> pd.DataFrame:
    """Return the resolution and the layers of every network. Raises: UserError when a network lacks one."""
    networks = content.get("arch") if isinstance(content, dict) else None
    rows = [_encode_layers(network) for network in networks or [None]]
    return pd.DataFrame(rows, columns=["resolution", *OFA_LAYERS]).astype(dict.fromkeys(OFA_LAYERS, "str"))


def _parse_operations(text: Any) -> list[str]:
    edges = []
    for node in str(text).split("+"):
        edges += [edge.split("~") for edge in node.strip("|").split("|")]
    origins = [edge[-1] for edge in edges]
    if origins != [name[3] for name in CELL_EDGES] or any(edge[0] not in CELL_OPERATIONS for edge in edges):
        raise UserError(
            "a cell must have six known operations in order",
            f"found {str(text)[:80]!r}",
            _REMEDY,
        )
    return [edge[0] for edge in edges]


def _encode_layers(network: Any) -> list[Any]:
    lengths = {
        "ks": len(OFA_LAYERS),
        "e": len(OFA_LAYERS),
        "d": _STAGES,
    }
    is_whole = isinstance(network, dict) and isinstance(network.get("r"), int | np.integer)
    for key, length in lengths.items():
        is_whole = is_whole and isinstance(network.get(key), list) and len(network[key]) == length
    if not is_whole:
        raise UserError(
            "a network must have 20 kernels and expansions, 5 depths and a resolution",
            f"found {str(network)[:80]!r}",
            _REMEDY,
        )
    texts = [f"k{kernel}_e{expansion}" for kernel, expansion in zip(network["ks"], network["e"], strict=True)]
    used = [layer < network["d"][stage] for stage in range(_STAGES) for layer in range(_MAX_LAYERS)]
    layers = [text if present else _ABSENT for text, present in zip(texts, used, strict=True)]
    return [float(network["r"]), *layers]


_ENCODERS: dict[str, Callable[[Any], pd.DataFrame]] = {
    "fbnet": encode_fbnet,
    "nasbench201": encode_cells,
    "ofa": encode_ofa,
}
"""Search space -> function from the content of its file of architectures to one row per architecture."""
