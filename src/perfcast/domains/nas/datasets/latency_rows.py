"""Builder of HELP's tables: one row per device and architecture, its latency the target."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame
from perfcast.domains.nas.datasets.torch_files import read_torch
from perfcast.domains.nas.sources.help import ARCHITECTURES, DEVICES, REFERENCES, latency_file
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.utils.errors import UserError

SOURCE = "help"
PUBLISHED_SUBSET = "published_subset"
_REMEDY = "ingest the source again"
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
_OTHERS = {
    "gold_6226": ("cpu", "Xeon Gold 6226"),
    "gold_6240": ("cpu", "Xeon Gold 6240"),
    "silver_4114": ("cpu", "Xeon Silver 4114"),
    "silver_4210r": ("cpu", "Xeon Silver 4210R"),
    "essential_ph_1": ("phone", "Essential PH-1"),  # the 1 belongs to the model name
    "pixel2": ("phone", "Pixel 2"),
    "pixel3": ("phone", "Pixel 3"),
    "samsung_a50": ("phone", "Galaxy A50"),
    "samsung_s7": ("phone", "Galaxy S7"),
    "raspi4": ("board", "Raspberry Pi 4"),
    "eyeriss": ("accelerator", "Eyeriss"),
    "fpga": ("accelerator", "FPGA"),
}

DEVICE_COLUMNS = (
    Column("result_id", Kind.CATEGORICAL, Role.KEY, "device", meaning="device and architecture", tags=(Tag.ROW,)),
    Column(
        "architecture",
        Kind.CATEGORICAL,
        Role.KEY,
        "architecture",
        meaning="search space and position of the architecture in it",
        tags=(Tag.ENTITY,),
    ),
    Column(
        "device",
        Kind.CATEGORICAL,
        Role.FEATURE,
        "device",
        meaning="device as published; GPUs include the batch size",
        tags=(Tag.TASK,),
    ),
    Column(
        "device_kind",
        Kind.CATEGORICAL,
        Role.FEATURE,
        "device",
        meaning="gpu, cpu, phone, board (single-board computer) or accelerator (ASIC, FPGA)",
        tags=(Tag.SLICE,),
    ),
    Column("device_model", Kind.CATEGORICAL, Role.FEATURE, "device", meaning="device model, without the batch size"),
    Column(
        "batch", Kind.NUMERICAL, Role.FEATURE, "device", meaning="batch size in images; missing except for GPUs", low=1
    ),
)
LATENCY_COLUMNS = (
    Column(
        "latency_ms", Kind.NUMERICAL, Role.TARGET, "device", "ms", "time of one inference; lower is better", low=1e-6
    ),
    Column(
        PUBLISHED_SUBSET,
        Kind.CATEGORICAL,
        Role.PROVENANCE,
        "device",
        meaning="the authors' use of the row: train, validation, test or unused",
    ),
    Column(
        "reference",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "device",
        meaning="1 for the reference architectures, measured first on every device",
        low=0,
        high=1,
    ),
    Column("source_file", Kind.CATEGORICAL, Role.PROVENANCE, "device", meaning="file of the row"),
    Column("source_line", Kind.NUMERICAL, Role.PROVENANCE, "device", meaning="position in that file, from 1", low=1),
)


@dataclass(frozen=True)
class Protocol:
    """The authors' split: devices by subset, and architectures by position.

    Training devices use the first `pool` architectures and the references. Other devices train on the references
    alone. Validation devices are evaluated on the pool. Test devices are evaluated on the next `queries`
    architectures, without the share `trimmed` of the fastest and of the slowest. The pool holds at most four fifths of
    the architectures.
    """

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    pool: int
    queries: int
    trimmed: float


def build_space(
    space: str,
    raw: Mapping[str, Path],
    options: Mapping[str, Any],
    columns: Sequence[Column],
    encode: Callable[[Any], pd.DataFrame],
) -> Standardized:
    """Standardize one search space.

    Args:
        space: Name of the search space: fbnet, nasbench201 or ofa.
        raw: Folder of each source.
        options: `near_zero`, the share of a device's median latency below which a latency is not a measurement, and
            `protocol`, see `Protocol`.
        columns: Columns of the architectures.
        encode: Function from the content of the architecture file to one row per architecture.

    Raises:
        UserError: A file or an option is invalid.
    """
    folder = raw[SOURCE]
    near_zero = options.get("near_zero")
    if isinstance(near_zero, bool) or not isinstance(near_zero, int | float) or not 0 <= near_zero < 1:
        raise UserError("option 'near_zero' must be a share from 0 to below 1", f"found {near_zero!r}")
    devices = DEVICES[space]
    protocol = read_protocol(options, devices)
    architectures = encode(read_torch(folder / space / ARCHITECTURES[space]))
    count = len(architectures)
    references = _read_positions(folder / space / REFERENCES, count)
    frames, rejections = [], []
    for device in devices:
        file = latency_file(space, device)
        latency = _read_latencies(folder / file, count)
        reasons = _find_reasons(latency, near_zero)
        rejections += [
            Rejection(SOURCE, file, int(row) + 1, str(reasons[row]), f"{latency[row]:.6g} ms")
            for row in np.flatnonzero(reasons != "")
        ]
        good = np.flatnonzero(reasons == "")
        subsets = assign_subsets(protocol, device, np.where(reasons == "", latency, np.nan), references)
        kind, model, batch = parse_device_name(device)
        frames.append(
            pd.DataFrame(
                {
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
            )
        )
    rows = pd.concat(frames, ignore_index=True)
    position = rows["position"].to_numpy()
    text = pd.Series(np.arange(count), dtype="int64").astype("str").str.zfill(5)
    encoded = architectures.assign(architecture=f"{space}-" + text, number=text).iloc[position].reset_index(drop=True)
    result_id = rows["device"] + "/" + encoded["number"]
    frame = pd.concat([rows, encoded.drop(columns="number")], axis=1).assign(result_id=result_id)
    table = build_table(f"{SOURCE}_{space}", frame, (*DEVICE_COLUMNS, *columns, *LATENCY_COLUMNS))
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rejections),
        rows_in=count * len(devices),
        quality={
            "architectures": count,
            "devices": len(devices),
            "distinct_latencies": {device: int(values.nunique()) for device, values in _group_by_device(rows)},
        },
    )


def parse_device_name(device: str) -> tuple[str, str, float]:
    """Return the kind, model and batch size of a device from the name of its file.

    The kind is gpu, cpu, phone, board or accelerator. The batch size is NaN where the name does not contain it.

    Raises:
        ValueError: The name is none of HELP's.
    """
    if device in _OTHERS:
        return (*_OTHERS[device], np.nan)
    match = re.fullmatch(r"(.+)_(\d+)", device)
    if not match or match[1] not in _GPUS:
        raise ValueError(f"{device!r} is not a device of HELP")
    return "gpu", _GPUS[match[1]], float(match[2])


def read_protocol(options: Mapping[str, Any], devices: Sequence[str]) -> Protocol:
    """Return option `protocol`.

    Raises:
        UserError: The option is incomplete, or lists a device that the dataset lacks or lists twice.
    """
    protocol = options.get("protocol")
    keys = {"train", "validation", "test", "pool", "queries", "trimmed"}
    if not isinstance(protocol, Mapping) or set(protocol) != keys:
        value = sorted(protocol) if isinstance(protocol, Mapping) else protocol
        raise UserError(
            f"option 'protocol' must have the keys {', '.join(sorted(keys))}", f"found {value!r}", _PROTOCOL_REMEDY
        )
    subsets = {subset: tuple(protocol[subset]) for subset in ("train", "validation", "test")}
    listed = [device for subset in subsets.values() for device in subset]
    unknown = sorted(set(listed) - set(devices))
    if unknown or len(set(listed)) < len(listed):
        fact = f"the dataset has no {', '.join(unknown)}" if unknown else "one device is listed twice"
        raise UserError("option 'protocol' must list different devices of the dataset", fact, _PROTOCOL_REMEDY)
    pool, queries, trimmed = int(protocol["pool"]), int(protocol["queries"]), float(protocol["trimmed"])
    return Protocol(**subsets, pool=pool, queries=queries, trimmed=trimmed)


def assign_subsets(protocol: Protocol, device: str, latency: np.ndarray, references: Sequence[int]) -> np.ndarray:
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
        subsets[order[int(len(order) * protocol.trimmed) : int(len(order) * (1 - protocol.trimmed))]] = "test"
        subsets[reference] = "train"
    return subsets


def _group_by_device(rows: pd.DataFrame) -> list[tuple[str, pd.Series]]:
    return [(str(device), values) for device, values in rows.groupby("device", sort=True)["latency_ms"]]


def _find_reasons(latency: np.ndarray, near_zero: float) -> np.ndarray:
    """Return the reason to quarantine each latency, "" for a valid one. Shapes: (n,) -> (n,) object."""
    usable = np.isfinite(latency) & (latency > 0)
    middle = np.median(latency[usable]) if usable.any() else 0.0
    reasons = np.where(usable, "", "not_a_positive_number").astype(object)
    reasons[usable & (latency < near_zero * middle)] = "near_zero_latency"
    return reasons


def _read_latencies(path: Path, count: int) -> np.ndarray:
    """Return the latencies of a device in ms, NaN where an entry is not a number. Raises: UserError."""
    content = read_torch(path)
    if not isinstance(content, list) or len(content) != count:
        fact = f"found {len(content)}" if isinstance(content, list) else f"found {type(content).__name__}"
        raise UserError(f"{path.name} must be a list of {count} latencies", fact, _REMEDY)
    return np.array([float(value) if isinstance(value, int | float) else np.nan for value in content], dtype=float)


def _read_positions(path: Path, count: int) -> list[int]:
    content = read_torch(path)
    if not isinstance(content, list) or not all(isinstance(value, int) and 0 <= value < count for value in content):
        raise UserError(
            f"{path.name} must be a list of positions from 0 to {count - 1}", "it holds something else", _REMEDY
        )
    return list(content)
