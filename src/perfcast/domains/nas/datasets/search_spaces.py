"""HELP's tables, one per search space of networks: a row per device and architecture, its latency the target."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame
from perfcast.domains.nas.sources.help import (
    ARCHITECTURES,
    DEVICES,
    OTHER_DEVICES,
    REFERENCES,
    latency_file,
)
from perfcast.schema.declare import category, number
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.sources.bounded_files import check_zip
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

SOURCE = "help"
PUBLISHED_SUBSET = "published_subset"
NEAR_ZERO = 0.05
"""Share of a device's median latency below which a latency is no inference: the output of such cells does not depend on
their input, and some devices do not compute them."""
_REMEDY = "ingest source 'help' again"
_PROTOCOL_REMEDY = "edit options.protocol in the dataset's conf"
_GPUS = {
    "1080ti": "GeForce GTX 1080 Ti",
    "2080ti": "GeForce RTX 2080 Ti",
    "titan_rtx": "Titan RTX",
    "titanx": "Titan X",
    "titanxp": "Titan Xp",
    "titan_xp": "Titan Xp",
    "v100": "Tesla V100",
}
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

_KINDS = "gpu, cpu, phone, board (single-board computer) or accelerator (ASIC, FPGA)"
DEVICE_COLUMNS = (
    category("result_id", Role.KEY, "device", "device and architecture", Tag.ROW),
    category(
        "architecture",
        Role.KEY,
        "architecture",
        "search space and position of the architecture in it",
        Tag.ENTITY,
    ),
    category(
        "device",
        Role.FEATURE,
        "device",
        "device as published; GPUs include the batch size",
        Tag.TASK,
    ),
    category("device_kind", Role.FEATURE, "device", _KINDS, Tag.SLICE),
    category("device_model", Role.FEATURE, "device", "device model, without the batch size"),
    number("batch", "device", "batch size in images; missing except for GPUs"),
)
_LATENCY = "time of one inference; lower is better"
_SUBSET = "the authors' use of the row: train, validation, test or unused"
_REFERENCE = "1 for the reference architectures, measured first on every device"
_LINE = "position in that file, from 1"
LATENCY_COLUMNS = (
    Column("latency_ms", Kind.NUMERICAL, Role.TARGET, "device", "ms", _LATENCY, low=1e-6),
    category(PUBLISHED_SUBSET, Role.PROVENANCE, "device", _SUBSET),
    Column("reference", Kind.NUMERICAL, Role.PROVENANCE, "device", "", _REFERENCE, 0, 1),
    category("source_file", Role.PROVENANCE, "device", "file of the row"),
    Column("source_line", Kind.NUMERICAL, Role.PROVENANCE, "device", "", _LINE, 1),
)


@dataclass(frozen=True)
class Protocol:
    """The authors' split: devices by subset, and architectures by position.

    Training devices use the first `pool` architectures and the references. Other devices train on the references
    alone. Validation devices are evaluated on the pool. Test devices are evaluated on the next `queries`
    architectures, without the share `trimmed` of the fastest and of the slowest. The pool holds at most four fifths of
    the architectures.
    """

    train: Sequence[str]
    validation: Sequence[str]
    test: Sequence[str]
    pool: int
    queries: int
    trimmed: float


def build_fbnet(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize 5,000 networks of FBNet on 27 devices; see `Protocol`. Source: Wu et al., arXiv 1812.03443."""
    columns = [category(name, Role.FEATURE, "blocks", f"block of layer {int(name[6:])} of 22") for name in FBNET_LAYERS]
    return _build_space("fbnet", raw, options, columns, encode_fbnet)


def build_nasbench201(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize all 15,625 cells on 27 devices; see `Protocol`. Source: Dong and Yang, arXiv 2001.00326."""
    meaning = "operation on the edge from node {} to node {} of the cell"
    columns = [category(name, Role.FEATURE, "cell", meaning.format(name[3], name[5])) for name in CELL_EDGES]
    return _build_space("nasbench201", raw, options, columns, encode_cells)


def build_ofa(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize 5,000 once-for-all networks on 12 GPUs; see `Protocol`. Source: Cai et al., arXiv 1908.09791."""
    meaning = "kernel and expansion of layer {} of stage {}; {} below that depth"
    columns = [
        number("resolution", "cost", "side length of the input image", unit="px"),
        *(category(name, Role.FEATURE, "layers", meaning.format(name[8], name[6], _ABSENT)) for name in OFA_LAYERS),
    ]
    return _build_space("ofa", raw, options, columns, encode_ofa)


def _build_space(
    space: str,
    raw: Mapping[str, Path],
    options: Mapping[str, Any],
    columns: Sequence[Column],
    encode: Callable[[Any], pd.DataFrame],
) -> Standardized:
    """Standardize one search space: fbnet, nasbench201 or ofa.

    Args:
        options: `protocol`, see `Protocol`.
        columns: Columns of the architectures.
        encode: Function from the content of the architecture file to one row per architecture.

    Raises:
        UserError: A file or the option is invalid.
    """
    folder = raw[SOURCE]
    devices = DEVICES[space]
    protocol = _read_protocol(options, devices)
    architectures = encode(read_torch(folder / space / ARCHITECTURES[space]))
    count = len(architectures)
    references = _read_positions(folder / space / REFERENCES, count)
    frames = []
    rejections = []
    for device in devices:
        file = latency_file(space, device)
        latency = _read_latencies(folder / file, count)
        reasons = _find_reasons(latency)
        rejections += [
            Rejection(SOURCE, file, int(row) + 1, str(reasons[row]), f"{latency[row]:.6g} ms")
            for row in np.flatnonzero(reasons != "")
        ]
        good = np.flatnonzero(reasons == "")
        subsets = _assign_subsets(protocol, device, np.where(reasons == "", latency, np.nan), references)
        kind, model, batch = parse_device_name(device)
        columns_of_device = {
            "position": good,
            "device": device,
            "device_kind": kind,
            "device_model": model,
            "batch": batch,
            "latency_ms": latency[good],
            PUBLISHED_SUBSET: subsets[good],
            "reference": np.isin(good, references).astype(float),
            "source_file": file,
            "source_line": good + 1.0,
        }
        frames.append(pd.DataFrame(columns_of_device))
    rows = pd.concat(frames, ignore_index=True)
    position = rows["position"].to_numpy()
    text = pd.Series(np.arange(count), dtype="int64").astype("str").str.zfill(5)
    encoded = architectures.assign(architecture=f"{space}-" + text, number=text).iloc[position].reset_index(drop=True)
    result_id = rows["device"] + "/" + encoded["number"]
    frame = pd.concat([rows, encoded.drop(columns="number")], axis=1).assign(result_id=result_id)
    table = build_table(f"{SOURCE}_{space}", frame, (*DEVICE_COLUMNS, *columns, *LATENCY_COLUMNS))
    distinct = rows.groupby("device", sort=True)["latency_ms"].nunique()
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rejections),
        rows_in=count * len(devices),
        quality={
            "architectures": count,
            "devices": len(devices),
            "distinct_latencies": {str(device): int(number) for device, number in distinct.items()},
        },
    )


def parse_device_name(device: str) -> tuple[str, str, float]:
    """Return the kind, model and batch size of a device; the batch size is NaN where the name does not contain it."""
    if device in OTHER_DEVICES:
        return (*OTHER_DEVICES[device], np.nan)
    name, _, batch = device.rpartition("_")
    return "gpu", _GPUS[name], float(batch)


def _read_protocol(options: Mapping[str, Any], devices: Sequence[str]) -> Protocol:
    """Return option `protocol`.

    Raises:
        UserError: The option is incomplete, or lists a device that the dataset lacks or lists twice.
    """
    protocol = options.get("protocol")
    keys = [each.name for each in fields(Protocol)]
    if not isinstance(protocol, Mapping) or set(protocol) != set(keys):
        fact = f"found {sorted(protocol) if isinstance(protocol, Mapping) else protocol!r}"
        raise UserError(
            f"option 'protocol' must have the keys {', '.join(sorted(keys))}",
            fact,
            _PROTOCOL_REMEDY,
        )
    listed = [device for name in ("train", "validation", "test") for device in protocol[name]]
    unknown = sorted(set(listed) - set(devices))
    if unknown or len(set(listed)) < len(listed):
        fact = f"the dataset has no {', '.join(unknown)}" if unknown else "one device is listed twice"
        raise UserError(
            "option 'protocol' must list different devices of the dataset",
            fact,
            _PROTOCOL_REMEDY,
        )
    return Protocol(**protocol)


def _assign_subsets(protocol: Protocol, device: str, latency: np.ndarray, references: Sequence[int]) -> np.ndarray:
    """Return the subset of each architecture on a device: train, validation, test, or unused.

    A reference is never evaluated, although the authors left one reference among their test architectures.

    Shapes: latency (architectures,) -> (architectures,) object.
    Units: latency ms, NaN where it was quarantined.
    """
    count = len(latency)
    position = np.arange(count)
    pool = min(protocol.pool, count * 4 // 5)
    pooled = position < pool
    reference = np.isin(position, list(references))
    subsets = np.full(count, "unused", dtype=object)
    if device in protocol.train:
        subsets[pooled | reference] = "train"
    elif device in protocol.validation:
        subsets[pooled] = "validation"
        subsets[reference] = "train"
    elif device in protocol.test:
        query_rows = np.flatnonzero((position >= pool) & (position < pool + protocol.queries))
        order = query_rows[np.argsort(latency[query_rows], kind="stable")]
        first = int(len(order) * protocol.trimmed)
        last = int(len(order) * (1 - protocol.trimmed))
        subsets[order[first:last]] = "test"
        subsets[reference] = "train"
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
    return np.array(
        [float(value) if isinstance(value, int | float) else np.nan for value in content],
        dtype=float,
    )


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
    lengths = {"ks": len(OFA_LAYERS), "e": len(OFA_LAYERS), "d": _STAGES}
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
    return [
        float(network["r"]),
        *(text if present else _ABSENT for text, present in zip(texts, used, strict=True)),
    ]
