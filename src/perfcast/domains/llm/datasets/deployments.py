"""Measured deployments: one row per deployment, load and quantity; the quantity is the task.

Properties of the measurements that their authors do not document:
- Two collections of different age overlap. The same run occurs in both with another version text, and runs of
  DeepSeek-R1 as runs of DeepSeek-V3, which has the same shape: they are merged.
- In 430 deployments of mixtures of experts the tensor and the expert parallelism were multiplied, so that an 8-GPU node
  has 16 or 64 GPUs. The true layout is unknown: they are rejected.
- Tensor parallelism above 8 is the number of GPUs of a pool.
- Disaggregated deployments lack the batch and the workers, and say nothing about speculative decoding: rejected.
- 351 rows state no number format. Their fastest tokens take 1.3 times as long as reading bfloat16 weights, twice as
  long as those of stated fp8: the format is that of the published weights, bfloat16.
- Six decoding steps are shorter than reading the weights and caches of the requests that decode takes: they ran on more
  GPUs, or with fewer requests, than stated, and are rejected.
- The batch of 41 rows is not the concurrency: in 27 it is that of one copy of the attention, in 14 of one collection
  that of a GPU or of less. Of the 14, three are faster than the memory; nothing disproves the others.
- The text of the origin contains paths of somebody's computer. Only the concurrency and the date are read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import (
    describe_first_bad,
    parse_numbers,
    quarantine,
    reject_outside,
)
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import (
    build_rejected_frame,
    join_rejections,
    read_rows,
    require_rows,
    split_rejections,
)
from perfcast.domains import read_columns
from perfcast.domains.llm.accelerators.accelerator_catalog import (
    GPU_FACTS,
    MODEL_FACTS,
    MODEL_LIMITS,
    find_gpus,
    find_models,
    read_gpus,
    read_models,
)
from perfcast.domains.llm.accelerators.served_memory import running_requests, shortest_step
from perfcast.domains.llm.accelerators.step_operators import (
    PARTS,
    add_parts,
    light_of,
    list_operators,
)
from perfcast.domains.llm.datasets.operator_lookup import time_operators
from perfcast.schema.table import build_table
from perfcast.sources.packed import Packed, read_records

SOURCE = "aiconfigurator"
FILE = "silicon_sample.csv"
OPERATORS = "aiconfigurator_operators"
"""Source of measured operators; without it the slowdowns are missing."""
NODE_GPUS = 8
SAME_SHARE = 1e-3
"""Two measurements of one configuration whose latencies all differ by less are the same run."""

MIN_OF_SHORTEST = 0.97
"""Share of the shortest possible step below which a step is impossible: bytes of weights are known to a per cent."""

_ORIGIN = "silicon_data_source"
_PARALLEL = {
    "tp_size": "tensor_parallel",
    "pp_size": "pipeline_parallel",
    "attention_dp_size": "attention_data_parallel",
    "moe_tp_size": "moe_tensor_parallel",
    "moe_ep_size": "moe_expert_parallel",
}
"""Column of the file -> column of the table."""
COLUMNS = read_columns(__package__, "columns.csv", "llm_serving")
_LATENCIES = {"ttft": "silicon_ttft_ms", "tpot": "silicon_tpot_ms"}
_NUMBERS = ("isl", "osl", *_LATENCIES.values())
_READ = (
    "id",
    _ORIGIN,
    "backend",
    "backend_version",
    "model_path",
    "system",
    "precision",
    "mode",
    "gemm_quant_mode",
    "isl",
    "osl",
    "batch_size",
    *_PARALLEL,
    *_LATENCIES.values(),
)
_PRECISIONS = {
    "fp8": "fp8",
    "fp8_block": "fp8",
    "fp4": "fp4",
    "nvfp4": "fp4",
    "int4": "int4",
    "int4_wo": "int4",
}
_DEPLOYMENT = ("family", "gpu", "backend", "precision", "isl", "osl", *_PARALLEL)


def pack(folder: Path) -> Packed:
    """Return the columns that are read, and of the origin the concurrency and the day.

    Raises: UserError when the file is absent or broken.
    """
    rows = read_rows(SOURCE, folder / FILE, _READ)
    origin = rows.frame[_ORIGIN]
    frame = rows.frame.drop(columns=_ORIGIN).assign(
        concurrency=origin.str.extract(r"silicon_concurrency=(\d{1,6})(?!\d)", expand=False),
        measured=origin.str.extract(r"measured=(\d{4}-\d\d-\d\d)", expand=False),
        in_progress=origin.str.contains("wip=True", regex=False).astype(int),
        file=FILE,
    )
    left_out = "columns that nothing reads; of the origin all but concurrency, day and progress"
    return Packed(join_rejections(frame.fillna(""), rows.rejections), left_out)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the deployments. An input row is one quantity of a measurement, or a rejected measurement.

    Raises:
        UserError: The file is absent or broken, or every row is rejected.
    """
    del options
    rows, unread = split_rejections(SOURCE, read_records(raw[SOURCE], SOURCE, pack))
    parsed = _parse(rows)
    good, rejected = quarantine(SOURCE, FILE, parsed, _rules(parsed))
    rejections = [*unread, *rejected]
    require_rows(len(good), str(raw[SOURCE] / FILE), rejections)
    single = _merge_same(good)
    table = build_table("llm_serving", _melt(single, raw.get(OPERATORS)), COLUMNS)
    inside, outside = reject_outside(table, SOURCE, FILE)
    rejections += outside
    merged = (len(good) - len(single)) * len(_LATENCIES)
    return Standardized(
        table=inside,
        rejected=build_rejected_frame(rejections),
        rows_in=len(unread) + len(rejected) + len(good) * len(_LATENCIES),
        merged={"same_measurement": merged},
        quality=_summarize_quality(single),
    )


def _parse(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the parsed numbers, concurrency and day, and the names of GPU, model and precision."""
    parsed = parse_numbers(frame, [*_NUMBERS, *_PARALLEL, "batch_size"])
    # a layout that states no expert or data parallelism has none
    parsed[list(_PARALLEL)] = parsed[list(_PARALLEL)].where(frame[list(_PARALLEL)] != "", 1.0)
    stated = pd.to_numeric(frame["concurrency"], errors="coerce")
    precision = frame["precision"].where(frame["precision"] != "", frame["gemm_quant_mode"])
    family = find_models(frame["model_path"])
    return parsed.assign(
        concurrency=stated.astype("float64").fillna(parsed["batch_size"]),
        measured=pd.to_datetime(frame["measured"], format="%Y-%m-%d", errors="coerce"),
        in_progress=frame["in_progress"].astype(float),
        precision=precision.map(_PRECISIONS).astype("str").where(~precision.isin(["", "bf16"]), "bf16"),
        stated_precision=precision,
        gpu=find_gpus(frame["system"]),
        family=family,
        is_mixture=family.map(read_models()["experts"]).fillna(0) > 0,
    )


def _rules(parsed: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the reason and details of rejection, in order; missing where a row satisfies the rule."""
    parallel = parsed[list(_PARALLEL)]
    tensor = parsed["tp_size"]
    data = parsed["attention_dp_size"]
    moe_tensor = parsed["moe_tp_size"]
    moe_expert = parsed["moe_ep_size"]
    aggregated = parsed["mode"] == "agg"
    gpus = tensor * data
    equal = (moe_tensor == moe_expert) & (moe_tensor > 1) & (gpus == moe_tensor * moe_expert)
    squared = equal | ((tensor == data) & (data > 1) & (moe_expert == gpus))
    layout = parallel.astype("str").agg(" x ".join, axis=1)
    numbers = parsed[list(_NUMBERS)]
    return {
        "no_concurrency": parsed["id"].where(parsed["concurrency"].isna()),
        "unknown_model": parsed["model_path"].where(parsed["family"].isna()),
        "unknown_gpu": parsed["system"].where(parsed["gpu"].isna()),
        "unknown_precision": parsed["stated_precision"].where(parsed["precision"].isna()),
        "not_a_number": describe_first_bad(numbers.isna() | ~np.isfinite(numbers), parsed),
        "not_positive": describe_first_bad(numbers <= 0, parsed),
        "parallelism_zero": layout.where(aggregated & (parallel == 0).any(axis=1)),
        "parallelism_squared": layout.where(aggregated & parsed["is_mixture"] & squared),
        "tp_of_a_pool": layout.where(aggregated & (tensor > NODE_GPUS)),
        "disaggregated": parsed["mode"].where(~aggregated),
        "not_a_layout": layout.where(parallel.isna().any(axis=1) | (parallel <= 0).any(axis=1)),
        "faster_than_memory": parsed["silicon_tpot_ms_text"].where(_is_impossible(parsed)),
    }


def _is_impossible(parsed: pd.DataFrame) -> pd.Series:
    """Return where a step is shorter than reading the weights and caches of the decoding requests takes."""
    wide = _join_facts(parsed)
    shortest = shortest_step(wide, parsed["silicon_ttft_ms"], parsed["silicon_tpot_ms"])
    return parsed["silicon_tpot_ms"] < MIN_OF_SHORTEST * shortest


def _join_facts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with their layout and load under the names of the table, and the facts of GPU and model."""
    gpus = read_gpus()
    models = read_models()
    facts = {name: frame[source] for source, name in _PARALLEL.items()}
    facts |= {name: frame["gpu"].map(gpus[name]) for name in (*GPU_FACTS, "generation")}
    facts |= {name: frame["family"].map(models[name]) for name in (*MODEL_FACTS, *MODEL_LIMITS)}
    return frame.assign(
        **facts,
        gpus=frame["tp_size"] * frame["pp_size"] * frame["attention_dp_size"],
        input_tokens=frame["isl"],
        output_tokens=frame["osl"],
    )


def _merge_same(frame: pd.DataFrame) -> pd.DataFrame:
    """Keep the first of the measurements of a configuration whose latencies are all within `SAME_SHARE`."""
    latencies = np.log(frame[list(_LATENCIES.values())].to_numpy())
    is_new = np.ones(len(frame), dtype=bool)
    limit = np.log1p(SAME_SHARE)
    for positions in frame.groupby([*_DEPLOYMENT, "concurrency"], dropna=False).indices.values():
        first: list[int] = []
        for position in positions:
            if any((np.abs(latencies[position] - latencies[other]) <= limit).all() for other in first):
                is_new[position] = False
            else:
                first.append(position)
    return frame[is_new]


def _melt(frame: pd.DataFrame, operators: Path | None) -> pd.DataFrame:
    """Return one row per measurement and quantity, with the facts of its GPU and model."""
    texts = pd.DataFrame({name: frame[name].astype("str").str.removesuffix(".0") for name in _DEPLOYMENT})
    deployment = texts.agg("|".join, axis=1)
    wide = _join_facts(frame).assign(
        model=frame["model_path"].str.rpartition("/")[2],
        model_family=frame["family"],
        deployment=deployment,
        configuration=deployment + "|" + frame["concurrency"].map("{:.0f}".format),
        backend_version=frame["backend_version"].where(frame["backend_version"] != ""),
        source_file=FILE,
        source_line=frame["line"],
    )
    wide = wide.assign(**_slowdowns(wide, operators))
    # names repeat: the line makes them keys
    name = frame["id"].str.rpartition("/")[2] + "|" + frame["line"].astype("str")
    parts = (
        wide.assign(quantity=quantity, latency=frame[column], result_id=name + "|" + quantity)
        for quantity, column in _LATENCIES.items()
    )
    return pd.concat(parts, ignore_index=True)


def _slowdowns(wide: pd.DataFrame, folder: Path | None) -> dict[str, np.ndarray]:
    """Return the slowdown of every part, from the measured operators of each deployment's own GPU."""
    if folder is None:
        return {f"part_{name}_slowdown": np.full(len(wide), np.nan) for name in PARTS}
    known = wide.assign(running=running_requests(wide))
    operators = list_operators(known)
    light = add_parts(operators, light_of(operators), known)
    measured = add_parts(operators, time_operators(folder, operators), known)
    positive = {name: np.where(values > 0, values, np.nan) for name, values in light.items()}
    return {f"part_{name}_slowdown": measured[name] / positive[name] for name in PARTS}


def _summarize_quality(frame: pd.DataFrame) -> dict[str, Any]:
    """Return counts of measurements: by GPU, family and precision, and without a date, a version or a number format."""
    return {
        "measurements": len(frame),
        "by": {
            name: {str(value): int(count) for value, count in frame[name].value_counts().sort_index().items()}
            for name in ("gpu", "family", "precision", "backend")
        },
        "no_date": int(frame["measured"].isna().sum()),
        "no_version": int((frame["backend_version"] == "").sum()),
        "no_stated_precision": int((frame["stated_precision"] == "").sum()),
    }
