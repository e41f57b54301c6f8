"""Builder of HELP's tables: one row per device and architecture, its latency the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.sources.help import ARCHITECTURES, DEVICES, REFERENCES, latency_file
from perfcast.datasets._help_devices import parse_device_name
from perfcast.datasets._help_parts import assign_subsets, read_protocol
from perfcast.datasets._strict_csv import Rejection, build_rejected_frame
from perfcast.datasets._torch_files import read_torch
from perfcast.datasets.base import Standardized
from perfcast.errors import UserError
from perfcast.schema import Column, Kind, Role, Tag, build_table

SOURCE = "help"
PUBLISHED_PART = "published_part"
_REMEDY = "ingest the source again"

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
        PUBLISHED_PART,
        Kind.CATEGORICAL,
        Role.PROVENANCE,
        "device",
        meaning="the authors' use of the row: train, valid, test or unused",
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
            `protocol`, see `_help_parts.Protocol`.
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
                    PUBLISHED_PART: subsets[good],
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
