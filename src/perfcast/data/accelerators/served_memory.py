"""Memory of a served language model: bytes of weights and caches, and the requests whose caches fit."""

from __future__ import annotations

import numpy as np
import pandas as pd

WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5625, "int4": 0.53}
"""Bytes of a weight with its scales."""
CACHE_BYTES = 1.0
USABLE_MEMORY = 0.9
"""Share of the memory that serving software takes for weights and caches; the default of vLLM."""


def cached_bytes(frame: pd.DataFrame) -> pd.Series:
    """Return the bytes of the key-value cache of one request, halfway through its answer."""
    length = frame["input_tokens"] + frame["output_tokens"] / 2
    in_window = np.minimum(length, frame["window"])
    tokens = frame["full_layers"] * length + frame["window_layers"] * in_window
    return frame["kv_elements"] * tokens * CACHE_BYTES


def running_requests(frame: pd.DataFrame) -> pd.Series:
    """Return the requests that a step serves: those whose caches fit beside the weights, at least one."""
    requests = frame["concurrency"]
    weights = frame["total_params_1e9"] * 1e9 * frame["precision"].map(WEIGHT_BYTES).astype("float64")
    free = USABLE_MEMORY * frame["gpus"] * frame["memory_gib"] * 2**30 - weights
    cached = cached_bytes(frame)
    fitting = (free / cached.where(cached > 0))
    return requests.where(requests <= fitting, fitting.clip(lower=1.0))
