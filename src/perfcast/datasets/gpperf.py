"""CUTLASS matrix products on one GPU: one row per measurement and quantity, which is the task.

What the rows tell, beyond what their authors say of them:
- The kernel's name fixes layout and tile. The script also varied a layout and a tile that no option of the profiler
  reads; they are kept as provenance, and a case is shape, kernel, alpha and beta, measured 28 times.
- nvidia-smi was asked for two seconds after the profiler had ended, or 30 W to an idle device. Where the power is
  higher another process was using the device: power and energy are of that state, not of the product.
- From the evening of 14 November on others used the device all the time: the same kernels run at half and a third of
  their speed. `device_state` says so by what nvidia-smi told before and after a run, and errors are told by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.datasets._gpperf_columns import ALONE, COLUMNS, QUANTITIES, SHARED, device_facts
from perfcast.datasets._gpperf_records import records
from perfcast.datasets._strict_csv import Rejection, rejected_frame, require_some
from perfcast.datasets.base import Standardized
from perfcast.schema import build_table, out_of_bounds
from perfcast.sources.gpperf import ARCHIVE, FAILED, RESULTS, read

SOURCE = "gpperf"
KERNEL = (
    r"cutlass_simt_(?P<type>[sdh])gemm_(?P<tile_m>\d+)x(?P<tile_n>\d+)_(?P<tile_k>\d+)x(?P<stages>\d)"
    r"_(?P<a>[nt])(?P<b>[nt])_align\d+"
)
TYPES = {"s": "float32", "d": "float64", "h": "float16"}
NOT_ASKED = "[N/A]"
"""What nvidia-smi says of the power of a device that sleeps."""

_NUMBERS = (
    *("unix_time", "m", "n", "k", "requested_tile_m", "requested_tile_n", "requested_tile_k", "alpha", "beta"),
    *("runtime_ms", "sm_clock_mhz", "temperature_c", "utilisation_after", "compute_capability"),
    *("max_memory_clock_mhz", "max_clock_mhz", "power_limit_w", "memory_mib", "memory_used_mib", "utilisation_before"),
    "power_w",
)
_CASE = ["m", "n", "k", "kernel", "requested_layout", "requested_tile_m", "requested_tile_n", "alpha", "beta"]
_IDLE_MIB = 8.0
"""Memory in use, in MiB, up to which no process has a context on the device; a context needs over a hundred."""


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardise the measurements. A row in is a quantity of a record, or a configuration that did not run.

    Raises: UserError when the archive is absent or broken.
    """
    del options
    texts = read(raw[SOURCE] / ARCHIVE)
    parsed = list(records(texts[RESULTS]))
    failed = [line for line in enumerate(texts[FAILED].splitlines(), 1) if line[1].strip()]
    rejections = [Rejection(SOURCE, FAILED, number, "did_not_run", text[:200]) for number, text in failed]
    rejections += [_rejection(record.line, record.reason, record.detail) for record in parsed if record.reason]
    frame = pd.DataFrame(
        [{**record.fields, "line": record.line} for record in parsed if not record.reason],
        columns=[*_FIELDS, "line"],
    )
    good, bad = _understood(frame)
    rejections += bad
    require_some(len(good), f"{RESULTS} in {ARCHIVE}", rejections)
    melted = _melted(good)
    rejections += [
        _rejection(row["line"], f"no_{row['quantity']}", row["power_text"])
        for row in melted[melted["value"].isna()].to_dict("records")
    ]
    measured = melted[melted["value"].notna()]
    repeated = measured.duplicated("result_id")
    table = build_table(SOURCE, measured[~repeated], COLUMNS)
    outside = out_of_bounds(table)
    wrong = outside.any(axis=1)
    rejections += [
        _rejection(int(line), "out_of_bounds", str(column))
        for line, column in zip(table.frame.loc[wrong, "source_line"], outside[wrong].idxmax(axis=1), strict=True)
    ]
    table = build_table(SOURCE, table.frame[~wrong], COLUMNS)
    return Standardized(
        table=table,
        rejected=rejected_frame(rejections),
        rows_in=len(failed) + len(bad) + sum(bool(record.reason) for record in parsed) + len(melted),
        merged={"repeated_configuration": int(repeated.sum())},
        quality=_quality(table.frame),
    )


def _rejection(line: int, reason: str, detail: str) -> Rejection:
    return Rejection(SOURCE, RESULTS, line, reason, detail[:200])


def _understood(text: pd.DataFrame) -> tuple[pd.DataFrame, list[Rejection]]:
    """Return the records with numbers and what the kernel's name tells, and the rejected others."""
    power = text["power_w"]
    units = {name: text[name].str.replace(r"\s*(MHz|MiB|W|%)$", "", regex=True) for name in _NUMBERS}
    numbers = pd.DataFrame({name: pd.to_numeric(values, errors="coerce") for name, values in units.items()})
    numbers = numbers.astype("float64").where(np.isfinite(numbers.astype("float64")))
    named = text["kernel"].str.extract(f"^{KERNEL}$")
    sides = ["m", "n", "k"]
    described = text[[f"problem_size_{side}" for side in sides]].set_axis(sides, axis=1)
    needed = numbers.drop(columns="power_w")
    rules = {
        "unknown_kernel": text["kernel"].where(named["type"].isna() | ~named["type"].isin(list(TYPES))),
        "not_a_number": _first(needed.isna(), text),
        "not_a_power": power.where(numbers["power_w"].isna() & ~power.isin([NOT_ASKED, ""])),
        "not_positive": _first(needed[[*sides, "runtime_ms"]] <= 0, text),
        "inconsistent_shape": _first(described != text[sides], text),
        "inconsistent_kernel": text["described_kernel"].where(text["described_kernel"] != text["kernel"]),
    }
    good, rejections = pd.Series(True, index=text.index), []
    for reason, detail in rules.items():
        hit = good & detail.notna()
        good &= ~hit
        rejections += [
            _rejection(line, reason, str(value)) for line, value in zip(text.loc[hit, "line"], detail[hit], strict=True)
        ]
    frame = text.assign(**numbers, power_text=power, dtype=named["type"].map(TYPES), layout=named["a"] + named["b"])
    for name in ("tile_m", "tile_n", "tile_k", "stages"):
        frame[name] = pd.to_numeric(named[name])
    return frame[good], rejections


def _first(bad: pd.DataFrame, text: pd.DataFrame) -> pd.Series:
    """Return '<column>: <text>' of the first bad cell of each row, missing where there is none."""
    detail = pd.Series(np.nan, index=text.index, dtype="str")
    for name in reversed(list(bad.columns)):
        detail[bad[name]] = f"{name}: " + text.loc[bad[name], name]
    return detail


def _melted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per record and quantity, the value missing where the power is not known.

    Energy is power times time: the file rounds its own to a thousandth of a joule, often to one digit.
    """
    quiet = (
        (frame["memory_used_mib"] <= _IDLE_MIB) & (frame["utilisation_before"] == 0) & (frame["utilisation_after"] == 0)
    )
    shape = frame["m"].map("{:.0f}".format) + "x" + frame["n"].map("{:.0f}".format)
    shape = shape + "x" + frame["k"].map("{:.0f}".format)
    case = frame[_CASE[3:]].astype("str").agg("|".join, axis=1)
    wide = frame.assign(
        shape=shape,
        transpose_a=frame["layout"].str[0].eq("t").astype(float),
        transpose_b=frame["layout"].str[1].eq("t").astype(float),
        device_state=np.where(quiet, ALONE, SHARED),
        measured_at=pd.to_datetime(frame["unix_time"], unit="s"),
        source_file=f"{ARCHIVE}/{RESULTS}",
        source_line=frame["line"],
        **device_facts(frame["device"]),
    )
    values = {
        "runtime": wide["runtime_ms"],
        "power": wide["power_w"],
        "energy": wide["power_w"] * wide["runtime_ms"],
    }
    parts: Iterable[pd.DataFrame] = (
        wide.assign(quantity=name, value=values[name], result_id=shape + "|" + case + "|" + name) for name in QUANTITIES
    )
    return pd.concat(parts, ignore_index=True)


def _quality(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how many cases there are, and how often the device was shared, by quantity."""
    cases = frame.groupby(["shape", "transpose_a", "transpose_b", "alpha", "beta"]).ngroups
    shared = frame["device_state"].eq(SHARED).groupby(frame["quantity"]).agg(["size", "sum"])
    return {
        "cases": int(cases),
        "shapes": int(frame["shape"].nunique()),
        "shared": {str(name): {"rows": int(row["size"]), "shared": int(row["sum"])} for name, row in shared.iterrows()},
    }


_FIELDS = [*dict.fromkeys((*_NUMBERS, *_CASE, "device", "described_kernel"))] + [
    f"problem_size_{side}" for side in ("m", "n", "k")
]
