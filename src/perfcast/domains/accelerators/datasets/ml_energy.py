"""ML.ENERGY: power and times of served models on H100 and B200, one row per configuration and quantity.

Configurations of diffusion models are rejected: they have other quantities. The power is that of the GPUs alone. Energy
per token is power x time per token, and no target of its own; throughput is the inverse of that time. The measured
batch and the measured length of answers are left out: they are results.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import describe_first_bad, quarantine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, require_rows
from perfcast.domains.accelerators.catalog import FACTS, find_accelerator, read_accelerators
from perfcast.schema.declare import category, number
from perfcast.schema.table import LOWER_IS_BETTER, Column, Kind, Role, Tag, build_table
from perfcast.sources.bounded_files import FETCH_AGAIN, PLAIN, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json_text

SOURCE = "ml_energy"
WORKLOADS = ("gpqa", "image-chat", "lm-arena-chat", "sourcegraph-fim", "text-to-image", "text-to-video", "video-chat")
QUANTITIES = {
    "watts": ("avg_power_watts", 1.0, "W of all GPUs"),
    "token_ms": ("output_throughput_tokens_per_sec", -1000.0, "ms per output token of all requests"),
    "median_itl": ("median_itl_ms", 1.0, "ms between tokens of a request, median"),
    "p90_itl": ("p90_itl_ms", 1.0, "the same, 90 % quantile"),
    "p95_itl": ("p95_itl_ms", 1.0, "the same, 95 % quantile"),
    "p99_itl": ("p99_itl_ms", 1.0, "the same, 99 % quantile"),
}
"""Quantity -> its field, the factor (a negative one divides by the field), and its meaning."""
_DIFFUSION = ("text-to-image", "text-to-video")
_NUMBERS = {
    "params_1e9": ("total_params_billions", "1e9", "parameters"),
    "active_params_1e9": ("activated_params_billions", "1e9", "parameters that compute a token"),
    "gpus": ("num_gpus", "", "GPUs"),
    "tensor_parallel": ("tensor_parallel", "", "GPUs that share each layer"),
    "expert_parallel": ("expert_parallel", "", "GPUs that share the experts"),
    "data_parallel": ("data_parallel", "", "copies of the attention layers"),
    "concurrency": ("max_num_seqs", "", "most requests at once"),
}
_REQUIRED = ("params_1e9", "active_params_1e9", "gpus", "concurrency")
_BYTES = {"bfloat16": 2.0, "fp8": 1.0, "mxfp4": 0.5}
_HARDWARE = ("bf16_tflops", "fp8_tflops", "fp4_tflops", "memory_gib", "memory_gb_per_s", "link_gb_per_s", "power_w")
COLUMNS = (
    category("result_id", Role.KEY, "load", "file, entry and quantity", Tag.ROW),
    category("configuration", Role.KEY, "load", "file and entry", Tag.BLOCK),
    category(
        "quantity", Role.KEY, "load", "; ".join(f"{k}: {v[2]}" for k, v in QUANTITIES.items()), Tag.TASK, Tag.CONFIG
    ),
    category("workload", Role.FEATURE, "load", "requests that are served", Tag.IDENTITY, Tag.CONFIG),
    category("model", Role.KEY, "model", "name of the model", Tag.ENTITY, Tag.IDENTITY, Tag.CONFIG),
    category("organization", Role.KEY, "model", "who published the model", Tag.SLICE),
    category("gpu", Role.KEY, "gpu", "GPU", Tag.IDENTITY, Tag.CONFIG, Tag.SLICE),
    category("precision", Role.FEATURE, "model", "number format of the weights", Tag.CONFIG, Tag.IDENTITY),
    number("weight_bytes", "model", "bytes of a weight", low=0),
    number("is_mixture", "model", "1 for a mixture of experts", low=0, high=1),
    *(
        number(
            *(name, "model" if "params" in name else "load", meaning),
            unit=unit,
            low=0,
            tags=(Tag.CONFIG, *((Tag.PARALLEL,) if name == "gpus" else ())),
        )
        for name, (_, unit, meaning) in _NUMBERS.items()
    ),
    *(number(name, "gpu", FACTS[name][1], unit=FACTS[name][0], low=0) for name in _HARDWARE),
    Column("generation_year", Kind.NUMERICAL, Role.KEY, "gpu", "year", "year of the generation's first product"),
    Column("value", Kind.NUMERICAL, Role.TARGET, "load", "", "watts or ms, see the quantity; lower is better", 1e-6),
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the configurations. An input row is one quantity of a configuration, or a rejected configuration.

    Raises: UserError when a file is absent or broken, or every configuration is rejected.
    """
    del options
    entries = pd.concat([_read(raw[SOURCE] / f"{name}.json", name) for name in WORKLOADS], ignore_index=True)
    rejections, parts = [], []
    for name, of_file in entries.groupby("workload", sort=False):
        numbers = of_file[[*_REQUIRED]]
        rules = {
            "diffusion": of_file["workload"].where(of_file["workload"].isin(_DIFFUSION)),
            "unknown_gpu": of_file["gpu_model"].where(of_file["gpu"].isna()),
            "unknown_precision": of_file["weight_precision"].where(of_file["weight_bytes"].isna()),
            "not_a_number": describe_first_bad(numbers.isna() | (numbers <= 0), of_file, ""),
        }
        good, rejected = quarantine(SOURCE, f"{name}.json", of_file, rules)
        rejections += rejected
        parts.append(good)
    good = pd.concat(parts, ignore_index=True)
    require_rows(len(good), SOURCE, rejections)
    long = pd.concat([_melt(good, quantity) for quantity in QUANTITIES], ignore_index=True)
    usable = long["value"].between(1e-6, size_limits.CELLS)
    _, bad = quarantine(SOURCE, "", long, {"not_positive": long["result_id"].where(~usable)})
    return Standardized(
        table=build_table(SOURCE, long[usable], COLUMNS, {LOWER_IS_BETTER: True}),
        rejected=build_rejected_frame([*rejections, *bad]),
        rows_in=len(rejections) + len(long),
        quality={"configurations": {str(name): int(count) for name, count in good["workload"].value_counts().items()}},
    )


def _read(path: Path, workload: str) -> pd.DataFrame:
    """Return the configurations of a file with the columns of the table."""
    try:
        with unpacked(path, PLAIN, most=size_limits.JSON) as file:
            content = read_json_text(file.read(), path.name)
    except FileNotFoundError:
        raise UserError(f"{path.name} must exist", "there is no such file", "ingest the source again") from None
    entries = content.get("configurations") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path.name} must have a list of configurations", "it has none", FETCH_AGAIN)
    frame = pd.DataFrame(entries).reindex(columns=sorted({key for entry in entries for key in entry} | _fields()))
    texts = {name: frame[name].astype("str") for name in ("model_id", "gpu_model", "weight_precision", "architecture")}
    fields = {name: field for name, (field, _, _) in _NUMBERS.items()}
    facts = read_accelerators()
    gpu = texts["gpu_model"].map({name: find_accelerator(_gpu(name)) for name in texts["gpu_model"].unique()})
    number_of = {name: pd.to_numeric(frame[field], errors="coerce").astype(float) for name, field in fields.items()}
    return frame.assign(
        **texts,
        **number_of,
        line=np.arange(1, len(frame) + 1),
        configuration=[f"{workload}/{line}" for line in range(1, len(frame) + 1)],
        workload=workload,
        model=texts["model_id"],
        organization=texts["model_id"].str.partition("/")[0],
        gpu=gpu,
        precision=texts["weight_precision"],
        weight_bytes=texts["weight_precision"].map(_BYTES),
        is_mixture=texts["architecture"].eq("MoE").astype(float),
        **{name: gpu.map(facts[name]).astype(float) for name in (*_HARDWARE, "generation_year")},
    )


def _fields() -> set[str]:
    """Return the fields that are read, whether a file has them or not."""
    texts = {"model_id", "gpu_model", "weight_precision", "architecture"}
    return {field for field, *_ in (*_NUMBERS.values(), *QUANTITIES.values())} | texts


def _gpu(name: str) -> str:
    return f"{name} SXM" if name.upper() == "H100" else name


def _melt(good: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return the rows of a quantity."""
    field, factor, _ = QUANTITIES[quantity]
    values = pd.to_numeric(good[field], errors="coerce").astype(float)
    values = -factor / values.where(values > 0) if factor < 0 else values * factor
    return good.assign(quantity=quantity, result_id=good["configuration"] + "/" + quantity, value=values)
