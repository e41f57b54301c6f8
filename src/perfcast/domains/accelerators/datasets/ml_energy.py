"""ML.ENERGY: power and times of served models on H100 and B200, one row per configuration and quantity.

Language models and diffusion have other quantities, and are two datasets. The power is that of the GPUs alone. Of
energy, power and time two are targets, and the third follows: energy per token is power x time per token, and the time
of a batch of images energy / power. The measured batch and the measured length of answers are results: left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import describe_first_bad, quarantine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, require_rows
from perfcast.domains import read_columns
from perfcast.domains.accelerators.catalog import (
    find_typed_accelerator,
    read_accelerators,
)
from perfcast.schema.table import LOWER_IS_BETTER, build_table
from perfcast.sources.bounded_files import FETCH_AGAIN, PLAIN, unpacked
from perfcast.sources.packed import Packed, read_records
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json_text

SOURCE = "ml_energy"


class Load(NamedTuple):
    """Dataset with its files, quantities and numbers.

    `quantities` have their field and the factor; a negative factor divides by the field. `numbers` have their field.
    """

    dataset: str
    workloads: tuple[str, ...]
    quantities: Mapping[str, tuple[str, float]]
    numbers: Mapping[str, str]


_MODEL = {
    "params_1e9": "total_params_billions",
    "active_params_1e9": "activated_params_billions",
    "gpus": "num_gpus",
}
_WATTS = ("avg_power_watts", 1.0)
LOADS = {
    "llm": Load(
        "ml_energy",
        ("gpqa", "image-chat", "lm-arena-chat", "sourcegraph-fim", "video-chat"),
        {
            "watts": _WATTS,
            "token_ms": ("output_throughput_tokens_per_sec", -1000.0),
            "median_itl": ("median_itl_ms", 1.0),
            "p90_itl": ("p90_itl_ms", 1.0),
            "p95_itl": ("p95_itl_ms", 1.0),
            "p99_itl": ("p99_itl_ms", 1.0),
        },
        {
            **_MODEL,
            "tensor_parallel": "tensor_parallel",
            "expert_parallel": "expert_parallel",
            "data_parallel": "data_parallel",
            "concurrency": "max_num_seqs",
        },
    ),
    "diffusion": Load(
        "ml_energy_diffusion",
        ("text-to-image", "text-to-video"),
        {
            "watts": _WATTS,
            "item_joules": ("energy_per_joules", 1.0),
        },
        {
            **_MODEL,
            "ulysses": "ulysses_degree",
            "ring": "ring_degree",
            "concurrency": "batch_size",
            "height": "height",
            "width": "width",
            "frames": "num_frames",
            "steps": "inference_steps",
        },
    ),
}
BYTES = {"bfloat16": 2.0, "fp8": 1.0, "mxfp4": 0.5}
"""Number format -> bytes of a weight."""
_TEXTS = ("model_id", "gpu_model", "weight_precision", "architecture")
_REQUIRED = ("params_1e9", "active_params_1e9", "gpus", "concurrency")
_HARDWARE = (
    "bf16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "memory_gib",
    "memory_gb_per_s",
    "link_gb_per_s",
    "power_w",
)


def pack(folder: Path) -> Packed:
    """Return the fields of every configuration that are read. Raises: UserError when a file is absent or broken."""
    columns = dict.fromkeys(_TEXTS)
    for load in LOADS.values():
        measured = [field for field, _ in load.quantities.values()]
        columns |= dict.fromkeys([*load.numbers.values(), *measured])
    rows = []
    for load in LOADS.values():
        for workload in load.workloads:
            for line, entry in enumerate(_read_configurations(folder / f"{workload}.json"), 1):
                texts = {name: _text(entry.get(name)) for name in columns}
                rows.append({"workload": workload, "line": str(line), **texts})
    records = pd.DataFrame(rows, columns=["workload", "line", *columns], dtype="str")
    return Packed(records, "fields that nothing reads")


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the configurations of a load. An input row is one quantity of a configuration, or a rejected one.

    Raises: UserError when a file is absent or broken, or every configuration is rejected.
    """
    load = LOADS[options["load"]]
    records = read_records(raw[SOURCE], SOURCE, pack)
    rejections = []
    parts = []
    for name in load.workloads:
        of_file = _describe(records[records["workload"] == name], load)
        numbers = of_file[[*_REQUIRED]]
        rules = {
            "unknown_gpu": of_file["gpu_model"].where(of_file["gpu"].isna()),
            "unknown_precision": of_file["weight_precision"].where(of_file["weight_bytes"].isna()),
            "not_a_number": describe_first_bad(numbers.isna() | (numbers <= 0), of_file, ""),
        }
        good, rejected = quarantine(SOURCE, f"{name}.json", of_file, rules)
        rejections += rejected
        parts.append(good)
    good = pd.concat(parts, ignore_index=True)
    require_rows(len(good), SOURCE, rejections)
    parts = [_melt(good, quantity, *how) for quantity, how in load.quantities.items()]
    long = pd.concat(parts, ignore_index=True)
    usable = long["value"].between(1e-6, size_limits.CELLS)
    _, bad = quarantine(SOURCE, "", long, {"not_positive": long["result_id"].where(~usable)})
    columns = read_columns(__package__, "columns.csv", load.dataset)
    return Standardized(
        table=build_table(load.dataset, long[usable], columns, {LOWER_IS_BETTER: True}),
        rejected=build_rejected_frame([*rejections, *bad]),
        rows_in=len(rejections) + len(long),
        quality={"configurations": {str(name): int(count) for name, count in good["workload"].value_counts().items()}},
    )


def _read_configurations(path: Path) -> list[dict[str, Any]]:
    """Return the configurations of a file, without the kind of item in the names of fields."""
    try:
        with unpacked(path, PLAIN, most=size_limits.JSON) as file:
            content = read_json_text(file.read(), path.name)
    except FileNotFoundError:
        raise UserError(f"{path.name} must exist", "there is no such file", "ingest the source again") from None
    entries = content.get("configurations") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path.name} must have a list of configurations", "it has none", FETCH_AGAIN)
    return [{name.replace("image_", "").replace("video_", ""): entry[name] for name in entry} for entry in entries]


def _text(value: object) -> str:
    """Return a text, or a number with all of its digits, "" for anything else."""
    return str(value) if isinstance(value, str | int | float) else ""


def _describe(records: pd.DataFrame, load: Load) -> pd.DataFrame:
    """Return the configurations of a workload with the columns of the table."""
    facts = read_accelerators()
    gpu = records["gpu_model"].map({name: find_typed_accelerator(name) for name in records["gpu_model"].unique()})
    numbers = {name: _parse_numbers(records[field]) for name, field in load.numbers.items()}
    if "frames" in numbers:
        numbers["frames"] = numbers["frames"].fillna(1.0)
    hardware = {name: gpu.map(facts[name]).astype(float) for name in (*_HARDWARE, "generation_year")}
    return records.assign(
        **numbers,
        configuration=records["workload"] + "/" + records["line"],
        model=records["model_id"],
        organization=records["model_id"].str.partition("/")[0],
        gpu=gpu,
        precision=records["weight_precision"],
        weight_bytes=records["weight_precision"].map(BYTES),
        is_mixture=records["architecture"].eq("MoE").astype(float),
        kwh_price=np.nan,
        **hardware,
    )


def _parse_numbers(texts: pd.Series) -> pd.Series:
    return pd.to_numeric(texts, errors="coerce").astype("float64")


def _melt(good: pd.DataFrame, quantity: str, field: str, factor: float) -> pd.DataFrame:
    """Return the rows of a quantity."""
    values = _parse_numbers(good[field])
    values = -factor / values.where(values > 0) if factor < 0 else values * factor
    return good.assign(quantity=quantity, result_id=good["configuration"] + "/" + quantity, value=values)
