"""CUTLASS matrix products on one GPU: one row per measurement and quantity; the quantity is the task.

Properties of the measurements that the authors do not document:
- The kernel's name fixes layout and tile. The script also varied a layout and a tile that the profiler ignores; they
  are provenance. A case is shape, kernel, alpha and beta, measured 28 times.
- nvidia-smi ran for two seconds after the profiler had ended; an idle device draws 30 W. A higher power means that
  another process used the device: power and energy describe that state, not the product.
- From the evening of 14 November 2024 on, other processes used the device all the time: the same kernels run at half
  and a third of their speed. `device_state` marks these rows by nvidia-smi's reports before and after a run, and the
  evaluation reports errors by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import describe_first_bad, quarantine, reject_outside
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import (
    Rejection,
    build_rejected_frame,
    join_rejections,
    require_rows,
    split_rejections,
)
from perfcast.domains.gemm.datasets.gemm_records import (
    ALONE,
    COLUMNS,
    QUANTITIES,
    SHARED,
    look_up_device_facts,
    parse_records,
)
from perfcast.domains.gemm.sources.gpperf import ARCHIVE, FAILED, RESULTS, read_archive
from perfcast.schema.table import build_table
from perfcast.sources.packed import Packed, read_records

SOURCE = "gpperf"
KERNEL = (
    r"cutlass_simt_(?P<type>[sdh])gemm_(?P<tile_m>\d+)x(?P<tile_n>\d+)_(?P<tile_k>\d+)x(?P<stages>\d)"
    r"_(?P<a>[nt])(?P<b>[nt])_align\d+"
)
TYPES = {"s": "float32", "d": "float64", "h": "float16"}
NOT_REPORTED = "[N/A]"
"""Power that nvidia-smi reports for a sleeping device."""

_SIDES = ["m", "n", "k"]
_SETTINGS = [
    "kernel",
    "requested_layout",
    "requested_tile_m",
    "requested_tile_n",
    "alpha",
    "beta",
]
"""What a case is besides its sides."""
_NUMBERS = (
    "unix_time",
    "m",
    "n",
    "k",
    "requested_tile_m",
    "requested_tile_n",
    "requested_tile_k",
    "alpha",
    "beta",
    "runtime_ms",
    "sm_clock_mhz",
    "temperature_c",
    "utilization_after",
    "compute_capability",
    "max_memory_clock_mhz",
    "max_clock_mhz",
    "power_limit_w",
    "memory_mib",
    "memory_used_mib",
    "utilization_before",
    "power_w",
)
_FIELDS = [
    *_NUMBERS,
    "kernel",
    "requested_layout",
    "device",
    "described_kernel",
    "problem_size_m",
    "problem_size_n",
    "problem_size_k",
]
"""Fields of a record that are read."""
_IDLE_MIB = 8.0
"""Largest memory in use, in MiB, without a context of any process; a context needs over a hundred."""


def pack(folder: Path) -> Packed:
    """Return the fields of every record that are read, and below them the configurations that did not run.

    Raises: UserError when the archive is absent or broken.
    """
    texts = read_archive(folder / ARCHIVE)
    parsed = list(parse_records(texts[RESULTS]))
    whole = [{**record.fields, "line": record.line} for record in parsed if not record.reason]
    rejections = [_make_rejection(record.line, record.reason, record.detail) for record in parsed if record.reason]
    failed = [line for line in enumerate(texts[FAILED].splitlines(), 1) if line[1].strip()]
    rejections += [Rejection(SOURCE, FAILED, number, "did_not_run", text[:200]) for number, text in failed]
    rows = pd.DataFrame(whole, columns=[*_FIELDS, "line"]).assign(file=RESULTS)
    return Packed(
        join_rejections(rows, rejections),
        "fields of a record that nothing reads, logs and plots",
    )


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the measurements. An input row is one quantity of a record, or a configuration that did not run.

    Raises:
        UserError: The archive is absent or broken.
    """
    del options
    frame, rejections = split_rejections(SOURCE, read_records(raw[SOURCE], SOURCE, pack))
    unread = len(rejections)
    good, bad = _parse_records(frame)
    rejections += bad
    require_rows(len(good), f"{RESULTS} in {ARCHIVE}", rejections)
    melted = _melt_quantities(good)
    rejections += [
        _make_rejection(row["line"], f"no_{row['quantity']}", row["power_text"])
        for row in melted[melted["value"].isna()].to_dict("records")
    ]
    measured = melted[melted["value"].notna()]
    repeated = measured.duplicated("result_id")
    table = build_table(SOURCE, measured[~repeated], COLUMNS)
    table, outside = reject_outside(table, SOURCE, RESULTS)
    rejections += outside
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rejections),
        rows_in=unread + len(bad) + len(melted),
        merged={"repeated_configuration": int(repeated.sum())},
        quality=_summarize_quality(table.frame),
    )


def _make_rejection(line: int, reason: str, detail: str) -> Rejection:
    return Rejection(SOURCE, RESULTS, line, reason, detail[:200])


def _parse_records(text: pd.DataFrame) -> tuple[pd.DataFrame, list[Rejection]]:
    """Return the records with parsed numbers and kernel names, and the rejections of the others."""
    power = text["power_w"]
    numbers = pd.DataFrame(index=text.index)
    for name in _NUMBERS:
        without_unit = text[name].str.replace(r"\s*(MHz|MiB|W|%)$", "", regex=True)
        numbers[name] = pd.to_numeric(without_unit, errors="coerce").astype("float64")
    numbers = numbers.where(np.isfinite(numbers))
    kernel = text["kernel"].str.extract(f"^{KERNEL}$")
    described_sides = text[[f"problem_size_{side}" for side in _SIDES]].set_axis(_SIDES, axis=1)
    required = numbers.drop(columns="power_w")
    rules = {
        "unknown_kernel": text["kernel"].where(kernel["type"].isna() | ~kernel["type"].isin(list(TYPES))),
        "not_a_number": describe_first_bad(required.isna(), text, ""),
        "not_a_power": power.where(numbers["power_w"].isna() & ~power.isin([NOT_REPORTED, ""])),
        "not_positive": describe_first_bad(required[[*_SIDES, "runtime_ms"]] <= 0, text, ""),
        "inconsistent_shape": describe_first_bad(described_sides != text[_SIDES], text, ""),
        "inconsistent_kernel": text["described_kernel"].where(text["described_kernel"] != text["kernel"]),
    }
    frame = text.assign(
        **numbers,
        power_text=power,
        dtype=kernel["type"].map(TYPES),
        layout=kernel["a"] + kernel["b"],
    )
    for name in ("tile_m", "tile_n", "tile_k", "stages"):
        frame[name] = pd.to_numeric(kernel[name])
    return quarantine(SOURCE, RESULTS, frame, rules)


def _melt_quantities(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per record and quantity; the value is missing where the power is unknown.

    Energy is power times time, because the file rounds its energy to a thousandth of a joule, often to one digit.
    """
    has_memory = frame["memory_used_mib"] <= _IDLE_MIB
    was_idle = frame["utilization_before"] == 0
    is_idle = frame["utilization_after"] == 0
    is_alone = has_memory & was_idle & is_idle
    m, n, k = (frame[side].map("{:.0f}".format) for side in _SIDES)
    shape = m + "x" + n + "x" + k
    case = frame[_SETTINGS].astype("str").agg("|".join, axis=1)
    wide = frame.assign(
        shape=shape,
        transpose_a=frame["layout"].str[0].eq("t").astype(float),
        transpose_b=frame["layout"].str[1].eq("t").astype(float),
        device_state=np.where(is_alone, ALONE, SHARED),
        measured_at=pd.to_datetime(frame["unix_time"], unit="s"),
        source_file=f"{ARCHIVE}/{RESULTS}",
        source_line=frame["line"],
        **look_up_device_facts(frame["device"]),
    )
    values = {
        "runtime": wide["runtime_ms"],
        "power": wide["power_w"],
        "energy": wide["power_w"] * wide["runtime_ms"],
    }
    parts = []
    for name in QUANTITIES:
        result_id = shape + "|" + case + "|" + name
        parts.append(wide.assign(quantity=name, value=values[name], result_id=result_id))
    return pd.concat(parts, ignore_index=True)


def _summarize_quality(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the number of cases, and the rows measured on a shared device by quantity."""
    cases = frame.groupby(
        [
            "shape",
            "transpose_a",
            "transpose_b",
            "alpha",
            "beta",
        ]
    ).ngroups
    by_quantity = frame["device_state"].eq(SHARED).groupby(frame["quantity"]).agg(["size", "sum"])
    shared = {}
    for name, row in by_quantity.iterrows():
        shared[str(name)] = {"rows": int(row["size"]), "shared": int(row["sum"])}
    return {
        "cases": int(cases),
        "shapes": int(frame["shape"].nunique()),
        "shared": shared,
    }
