"""Operators of language models measured on one machine: one row per operator and shape; the target is the time in ms.

The columns are those of `gpu_operators`, so features and predictors of GPUs are those of this machine. Its peak and its
memory bandwidth were measured, not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.accelerators.operator_costs import WEIGHT_BYTES, light_time, operator_amounts
from perfcast.data.datasets.gpu_operators.operator_columns import COLUMNS as OPERATOR_COLUMNS
from perfcast.data.datasets.gpu_operators.operator_columns import SHAPES, SITES
from perfcast.data.datasets.gpu_operators.operator_tables import FAST_SHARE
from perfcast.data.datasets.host.measured_tables import (
    describe_first_bad,
    keep_steadiest,
    mark_outside,
    measurement_column,
    parse_numbers,
    quarantine,
    read_machine,
    read_max_spread,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, read_rows, require_rows
from perfcast.schema.table import Column, Tag, build_table

SOURCE = "host_operators"
TABLE = "host_operators.csv.gz"
_REMEDY = "measure anew with `perfcast measure operators`"
LENGTHS = {
    op: [name for name in SHAPES[op].values() if name not in {"window", "tp", "ep", "distribution"}]
    for op in ("gemm", "context_attention", "generation_attention", "moe")
}
"""Operator -> the columns of its shape that are measured."""
_ALL = list(dict.fromkeys(name for names in LENGTHS.values() for name in names))
_TIMING = ["warmups", "repeats", "seconds_median", "seconds_min", "seconds_spread", "order", "pass"]
_FACTS = {
    **{"sm_count": "sm_count", "l2_mib": "l2_mib", "bf16_tflops": "peak_tflops"},
    **{"memory_gb_per_s": "memory_gb_per_s", "memory_gib": "memory_gib"},
}
"""Column -> fact of the device in the description of the machine."""
_NOT_HERE = {"architecture_year", "gpu_family", "backend", "backend_version", "kernel_source"}


def _adapted(column: Column) -> Column:
    """Return a column of `gpu_operators` as one machine has it: its shapes, not its GPUs, are what is unseen."""
    changes: dict[str, dict[str, Any]] = {
        "gpu": {"tags": (Tag.CONFIG,), "meaning": "name of the processor or GPU"},
        "shape": {"tags": (Tag.ENTITY, Tag.BLOCK, Tag.CONFIG)},
        "bf16_tflops": {"meaning": "rate of a large product in the measured number format"},
        "memory_gb_per_s": {"meaning": "rate of a copy in memory, both directions"},
        "sm_count": {"meaning": "multiprocessors, or threads of a CPU"},
    }
    return replace(column, **changes.get(column.name, {}))


COLUMNS = (
    *(_adapted(column) for column in OPERATOR_COLUMNS if column.name not in _NOT_HERE),
    measurement_column("seconds_min", "time of the fastest sample", unit="s"),
    measurement_column("seconds_spread", "interquartile range / median of the sample times"),
    measurement_column("warmups", "calls before the first sample"),
    measurement_column("repeats", "number of samples"),
    measurement_column("order", "position in the sequence of measurements"),
    measurement_column("pass", "0 for the first measurement, more for repetitions"),
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the measured operators.

    Options: `max_spread`, the relative interquartile range above which a measurement is quarantined as unstable.

    Raises:
        UserError: A file is missing or broken, or an option is invalid.
    """
    bound = read_max_spread(SOURCE, options)
    rows = read_rows(SOURCE, raw[SOURCE] / TABLE, ["op", "dtype", *_ALL, *_TIMING])
    frame, rejections = _quarantine(parse_numbers(rows.frame, [*_ALL, *_TIMING]), bound)
    require_rows(len(frame), SOURCE, [*rows.rejections, *rejections])
    best, duplicates = keep_steadiest(frame, ["op", "dtype", *_ALL])
    machine = read_machine(SOURCE, raw[SOURCE] / f"{SOURCE}.json", _REMEDY)
    table = build_table(SOURCE, _add_facts(_name(best), machine.get("device") or {}), COLUMNS)
    return Standardized(
        table=table,
        rejected=build_rejected_frame([*rows.rejections, *rejections]),
        rows_in=rows.rows_in,
        merged={"duplicate_configuration": duplicates},
        quality={
            "shapes": len(best),
            "spread_median": round(float(best["seconds_spread"].median()), 5),
            "faster_than_light": int(table.frame["faster_than_light"].sum()),
        },
    )


def _quarantine(frame: pd.DataFrame, bound: float) -> tuple[pd.DataFrame, list[Rejection]]:
    """Quarantine each row under the first rule that it breaks; return the other rows and the rejections."""
    needed = pd.DataFrame({name: frame["op"].map(lambda op, n=name: n in LENGTHS.get(op, ())) for name in _ALL})
    lengths, times = frame[_ALL], frame[["seconds_median", "seconds_min"]]
    rules = {
        "unknown_operator": frame["op"].where(~frame["op"].isin(list(LENGTHS))),
        "unknown_dtype": frame["dtype"].where(~frame["dtype"].isin(list(WEIGHT_BYTES))),
        "not_a_number": describe_first_bad((lengths.isna() & needed) | (lengths.notna() & ~needed), frame),
        "not_a_whole_number": describe_first_bad((lengths % 1 != 0) & needed, frame),
        "not_timed": describe_first_bad(~(times > 0), frame),
        "out_of_bounds": describe_first_bad(mark_outside(SOURCE, frame, COLUMNS, _ALL), frame),
        "unstable": ("seconds_spread: " + frame["seconds_spread_text"]).where(~(frame["seconds_spread"] <= bound)),
    }
    return quarantine(SOURCE, TABLE, frame, rules)


def _name(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the names of their shapes, and the lengths that a single device fixes."""
    is_mixture, is_attention = frame["op"] == "moe", frame["op"].str.endswith("attention")
    filled = frame.assign(
        window=np.where(is_attention, 0.0, np.nan),
        tp=np.where(is_mixture, 1.0, np.nan),
        ep=np.where(is_mixture, 1.0, np.nan),
        distribution=pd.Series("balanced", frame.index, dtype="str").where(is_mixture),
    )
    texts = {
        name: filled[name].astype("str").str.removesuffix(".0") for name in dict.fromkeys([*_ALL, "window", "tp", "ep"])
    }

    def join(names_of: Mapping[str, Any]) -> pd.Series:
        joined = pd.Series("", filled.index, dtype="str")
        for op in LENGTHS:
            rows = filled["op"] == op
            for name in names_of[op]:
                joined[rows] += "|" + texts[name][rows]
            joined[rows] = op + joined[rows]
        return joined

    shape = join(LENGTHS) + "/" + filled["dtype"]
    return filled.assign(shape=shape, shape_site=join(SITES), latency=1e3 * filled["seconds_median"])


def _add_facts(frame: pd.DataFrame, device: Mapping[str, Any]) -> pd.DataFrame:
    """Return the declared columns with the facts of the device, operations and bytes."""
    name = str(device.get("name") or "unknown")
    numbers = {column: _positive(device.get(fact)) for column, fact in _FACTS.items()}
    joined = frame.assign(
        gpu=name, result_id=name + "/" + frame["shape"], source_file=TABLE, source_line=frame["line"], **numbers
    ).reindex(columns=[column.name for column in COLUMNS])
    numerical = [column.name for column in OPERATOR_COLUMNS if column.name in joined and column.unit]
    joined[numerical] = joined[numerical].astype("float64")
    amounts = operator_amounts(joined)
    fast = joined["latency"].to_numpy() < FAST_SHARE * light_time(joined, amounts)
    return joined.assign(**amounts, faster_than_light=fast.astype(float))


def _positive(value: Any) -> float:
    """Return a positive number as it is, missing for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < np.inf else np.nan
