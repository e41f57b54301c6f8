"""Memory of a served language model: bytes of weights and caches, and the requests whose caches fit.

Sources: bytes of a decoding step by Pope et al., Efficiently Scaling Transformer Inference, 2022, arXiv 2211.05102;
expected number of experts that a batch touches, from independent choices of each token; Little's law.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5625, "int4": 0.53}
"""Bytes of a weight with its scales."""
CACHE_BYTES = 1.0
USABLE_MEMORY = 0.9
"""Share of the memory that serving software takes for weights and caches; the default of vLLM."""
SHARED_OF_ACTIVE = 0.35
"""Share of the active parameters of a mixture that every token uses: attention, embeddings, shared experts."""


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
    fitting = free / cached.where(cached > 0)
    return requests.where(requests <= fitting, fitting.clip(lower=1.0))


def experts_used(frame: pd.DataFrame, running: pd.Series) -> pd.Series:
    """Return the expected share of the experts that a step of the running requests uses; 1 for a dense model."""
    share = frame["experts_per_token"] / frame["experts"].where(frame["experts"] > 0)
    return (1 - (1 - share) ** running).where(frame["experts"] > 0, 1.0)


def weights_read(frame: pd.DataFrame, running: pd.Series) -> pd.Series:
    """Return the bytes of the weights that a step of the running requests reads."""
    active, total = frame["active_params_1e9"] * 1e9, frame["total_params_1e9"] * 1e9
    shared = SHARED_OF_ACTIVE * active
    read = (shared + (total - shared) * experts_used(frame, running)).where(frame["experts"] > 0, total)
    return read * frame["precision"].map(WEIGHT_BYTES).astype("float64")


def shortest_step(frame: pd.DataFrame, ttft: pd.Series, tpot: pd.Series) -> pd.Series:
    """Return the time in ms that reading the weights and caches of the decoding requests takes at the bandwidth.

    By Little's law the requests that decode are the share of those in progress that decoding has of the whole latency,
    so requests that wait for their first token count for nothing.
    """
    decoding = (frame["output_tokens"] - 1).clip(lower=1) * tpot
    running = frame["concurrency"] * decoding / (decoding + ttft)
    return (weights_read(frame, running) + running * cached_bytes(frame)) / (
        frame["gpus"] * frame["memory_gb_per_s"] * 1e6
    )
