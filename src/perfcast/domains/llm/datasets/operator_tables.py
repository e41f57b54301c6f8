"""Measured operators of language models on GPUs: one row per operator, shape, number format and GPU.

Properties of the measurements that their authors do not document:
- The benchmark repeats one buffer, so that what fits the second-level cache is read from there: rows may be faster
  than the memory allows. They are kept.
- The time of a product may fall when only m grows, because another kernel is chosen. Nothing is smoothed.
- The kernel is known after the run alone, and the back end has nearly one value per GPU: neither is a feature.
- Two measurements of one case occur on A100 alone; their median is kept.

The published tables have 2.5 million rows. Shapes are drawn, not rows, so that a shape is kept on every GPU that has
it: option `one_in` names one shape in how many is kept per table, by the CRC-32 of its name.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import quarantine, reject_outside
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, require_rows
from perfcast.domains.llm.accelerators.accelerator_catalog import find_gpus, read_gpus
from perfcast.domains.llm.accelerators.operator_costs import light_time, operator_amounts
from perfcast.domains.llm.datasets.operator_columns import COLUMNS, DTYPES, SHAPES, SITES
from perfcast.domains.llm.sources.aiconfigurator_operators import WINDOW, list_tables, read_operators, table_file
from perfcast.schema.table import build_table
from perfcast.utils.errors import UserError

SOURCE = "aiconfigurator_operators"
BACKENDS = {"a100_sxm": "sglang"}
"""Back end of a GPU's tables where it is not vLLM; NCCL is that of every table of collectives."""

FAST_SHARE = 0.95
"""Share of the speed-of-light time below which a row is marked."""

_ELEMENT_BYTES = {"half": 2.0, "int8": 1.0}
"""Bytes of an element of a message."""


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the operators. An input row is one row of a published table.

    Args:
        raw: Folder of the source.
        options: `one_in`, by table: one shape in how many is kept; `dataset`, the name of the table.

    Raises:
        UserError: A file or an option is invalid, or every row is rejected.
    """
    one_in = _read_one_in(options)
    dataset = str(options.get("dataset", "gpu_operators"))
    rows_in, parts, rejections, left_out = 0, [], [], 0
    for system, table in list_tables():
        read = _name_shapes(read_operators(raw[SOURCE], system, table), system, table)
        rows_in += len(read)
        drawn = read[_is_drawn(read["op_shape"], one_in[table])]
        left_out += len(read) - len(drawn)
        good, rejected = quarantine(SOURCE, table_file(system, table), drawn, _rules(drawn, SHAPES[table].values()))
        rejections += rejected
        parts.append(good)
    good = pd.concat(parts, ignore_index=True)
    require_rows(len(good), SOURCE, rejections)
    single, ratios = _merge_repeated(good)
    built = build_table(dataset, _add_amounts(_join_gpus(single)), COLUMNS)
    built, outside = reject_outside(built, SOURCE)
    rejections += outside
    return Standardized(
        table=built,
        rejected=build_rejected_frame(rejections),
        rows_in=rows_in,
        merged={"repeated_case": len(good) - len(single), "shape_not_drawn": left_out},
        quality=_summarize_quality(built.frame, ratios),
    )


def _read_one_in(options: Mapping[str, Any]) -> dict[str, int]:
    given = options.get("one_in", {})
    known = isinstance(given, Mapping) and set(given) <= set(SHAPES)
    if not known or not all(
        isinstance(count, int) and not isinstance(count, bool) and count > 0 for count in given.values()
    ):
        raise UserError(f"option 'one_in' must be whole numbers above 0 for {', '.join(SHAPES)}", f"found {given!r}")
    return {table: int(given.get(table, 1)) for table in SHAPES}


def _name_shapes(frame: pd.DataFrame, system: str, table: str) -> pd.DataFrame:
    """Return the rows of a file with the columns of a shape, its names, its number format and its place."""
    line = np.arange(1, len(frame) + 1)
    if WINDOW in SHAPES[table] and WINDOW not in frame:
        frame = frame.assign(**{WINDOW: 0})
    shape = frame[list(SHAPES[table])].rename(columns=SHAPES[table])
    dtype = frame[DTYPES[table]].astype("str")
    op = frame["op_name"].astype("str") if table == "nccl" else pd.Series(table, frame.index, dtype="str")
    texts = {name: shape[name].astype("str") for name in SHAPES[table].values()}
    named = shape.assign(
        op=op,
        op_shape=table + "|" + _join(texts, list(texts)),
        shape_site=table + "|" + _join(texts, SITES[table]),
        dtype=dtype,
        latency=frame["latency"],
        system=system,
        backend="nccl" if table == "nccl" else BACKENDS.get(system, "vllm"),
        backend_version=frame["version"].astype("str"),
        kernel_source=frame["kernel_source"].astype("str"),
        source_file=table_file(system, table),
        line=line,
    )
    if table == "nccl":
        named["bytes_message"] = shape["message_elements"] * dtype.map(_ELEMENT_BYTES)
    return named


def _join(texts: Mapping[str, pd.Series], names: Sequence[str]) -> pd.Series:
    joined = texts[names[0]]
    for name in names[1:]:
        joined = joined + "|" + texts[name]
    return joined


def _is_drawn(shapes: pd.Series, one_in: int) -> pd.Series:
    drawn = {shape: zlib.crc32(shape.encode()) % one_in == 0 for shape in shapes.unique()}
    return shapes.map(drawn).astype(bool)


def _rules(frame: pd.DataFrame, shape: Any) -> dict[str, pd.Series]:
    """Return the reason and details of rejection, in order; missing where a row satisfies the rule."""
    latency = pd.to_numeric(frame["latency"], errors="coerce")
    numbers = frame[[name for name in shape if name != "distribution"]].apply(pd.to_numeric, errors="coerce")
    positive = numbers.drop(columns="window", errors="ignore")
    bad = ~((positive > 0) & np.isfinite(positive)).all(axis=1) | ~(numbers >= 0).all(axis=1)
    unknown = frame["system"].map(
        {name: find_gpus(pd.Series([name])).isna().iloc[0] for name in frame["system"].unique()}
    )
    return {
        "unknown_gpu": frame["system"].where(unknown.astype(bool)),
        "not_a_shape": frame["op_shape"].where(bad),
        "not_positive": latency.astype("str").fillna("missing").where(~((latency > 0) & np.isfinite(latency))),
        "unknown_dtype": frame["dtype"].where(
            (frame["op_shape"].str.startswith("nccl|")) & ~frame["dtype"].isin(_ELEMENT_BYTES)
        ),
    }


def _merge_repeated(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Keep one row per case with the median of its latencies; return the ratios of largest to smallest, too."""
    case = ["system", "op", "dtype", "op_shape"]
    if not frame.duplicated(case).any():
        return frame, np.empty(0)
    repeated = frame.duplicated(case, keep=False)
    groups = frame[repeated].groupby(case, sort=False)["latency"]
    extremes = groups.agg(["min", "max"])
    frame = frame.copy()
    frame.loc[repeated, "latency"] = groups.transform("median")
    return frame.drop_duplicates(case).reset_index(drop=True), (extremes["max"] / extremes["min"]).to_numpy()


def _join_gpus(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with their keys and with the facts of their GPU."""
    gpus = read_gpus()
    gpu = frame["system"].map(
        dict(zip(frame["system"].unique(), find_gpus(pd.Series(frame["system"].unique())), strict=True))
    )
    key = frame["op_shape"].str.partition("|")[2]
    facts = {column.name: gpu.map(gpus[column.name]) for column in COLUMNS if column.name in gpus}
    year = gpu.map(gpus["generation_year"]).astype(int).astype("str")
    return frame.assign(
        **facts,
        gpu=gpu,
        gpu_family=gpu.map(gpus["generation"]),
        architecture_year=pd.to_datetime(year, format="%Y"),
        shape=frame["op"] + "/" + frame["dtype"] + "/" + key,
        result_id=gpu + "/" + frame["op"] + "/" + frame["dtype"] + "/" + key,
        source_line=frame["line"],
    )


def _add_amounts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the declared columns with the operations and bytes, and the mark of rows that are faster than light."""
    frame = frame.reindex(columns=[column.name for column in COLUMNS])
    amounts = operator_amounts(frame)
    fast = frame["latency"].to_numpy() < FAST_SHARE * light_time(frame, amounts)
    return frame.assign(**amounts, faster_than_light=fast.astype(float))


def _summarize_quality(frame: pd.DataFrame, ratios: np.ndarray) -> dict[str, Any]:
    """Return counts of rows, shapes and layers by operator and family, and the spread of repeated measurements."""
    counts = (frame["op"] + "/" + frame["gpu_family"]).value_counts().sort_index()
    return {
        "rows": {str(name): int(count) for name, count in counts.items()},
        "shapes": {str(op): int(count) for op, count in frame.groupby("op")["shape"].nunique().items()},
        "sites": {str(op): int(count) for op, count in frame.groupby("op")["shape_site"].nunique().items()},
        "faster_than_light": {
            str(op): int(count) for op, count in frame.groupby("op")["faster_than_light"].sum().items()
        },
        "repeated": {
            "cases": len(ratios),
            "median_ratio": round(float(np.median(ratios)), 4) if len(ratios) else None,
            "largest_ratio": round(float(ratios.max()), 4) if len(ratios) else None,
        },
    }
