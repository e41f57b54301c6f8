"""Derived characteristics of a system that runs a benchmarked model: rates, memory, host, and age of the software.

Work takes as long as its arithmetic at the peak of the number format, or as its bytes at the memory's bandwidth. The
format is the best one for the kind of model: 4-bit floats for language models where there are some, else 8 bits.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.domains import read_columns
from perfcast.domains.accelerators.catalog import read_accelerators, read_models
from perfcast.features.feature_math import (
    append,
    arrays,
    decimal_year,
    map_distinct,
    ratio,
)
from perfcast.schema.table import Table

REQUIRES = (
    "accelerator",
    "model",
    "kind",
    "year",
    "count",
    "nodes",
    "sockets",
    "cores",
    "params_1e9",
    "fp32_tflops",
    "bf16_tflops",
    "fp16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "int8_tops",
    "memory_gib",
    "memory_gb_per_s",
    "link_gb_per_s",
    "power_w",
)
_GIB = 2.0**30 / 1e9
_COLUMNS = read_columns(__package__, "columns.csv", "mlperf_inference")
_LOGS = (
    "low_tflops",
    "half_tflops",
    "bandwidth",
    "memory_gib",
    "power_w",
    "count",
    "host_cores",
    "balance",
)


def derive(table: Table) -> Table:
    """Append the derived characteristics. Raises: ValueError when a column of `REQUIRES` is missing."""
    of = arrays(table, REQUIRES)
    eight = np.fmax(of["int8_tops"], of["fp8_tflops"])
    half = np.fmax(np.fmax(of["bf16_tflops"], of["fp16_tflops"]), of["fp32_tflops"])
    is_llm = of["kind"] == "llm"
    small = np.where(is_llm, of["fp4_tflops"], np.nan)
    low = np.where(
        np.isnan(small),
        np.where(np.isnan(eight), half, eight),
        small,
    )
    size = np.where(
        np.isnan(small),
        np.where(np.isnan(eight), 2.0, 1.0),
        0.5,
    )
    weights = of["params_1e9"] * size / _GIB
    values = {
        "low_tflops": low,
        "low_bytes": size,
        "half_tflops": half,
        "bandwidth": of["memory_gb_per_s"],
        "low_time": ratio(np.full(len(low), 1e3), low),
        "half_time": ratio(np.full(len(low), 1e3), half),
        "memory_time": ratio(np.full(len(low), 1e3), of["memory_gb_per_s"]),
        "balance": ratio(1e3 * low, of["memory_gb_per_s"]),
        "weights_share": ratio(weights, of["count"] * of["memory_gib"]),
        "free_gib": np.maximum(of["memory_gib"] - ratio(weights, of["count"]), 0.0),
        "counted": np.ones(len(low)),
        "host_cores": ratio(of["sockets"] * of["nodes"] * of["cores"], of["count"]),
        "per_node": ratio(of["count"], of["nodes"]),
        "accelerator_age": _age(of["year"], of["accelerator"], read_accelerators()["known_from"]),
        "task_age": _age(of["year"], of["model"], read_models()["known_from"]),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)


def _age(year: np.ndarray, names: np.ndarray, since: pd.Series) -> np.ndarray:
    days = {str(name): day for name, day in since.items()}
    first = map_distinct(days.get, names)
    ages: np.ndarray = year - decimal_year(pd.to_datetime(pd.Series(first, dtype="object")).to_numpy())
    return ages
