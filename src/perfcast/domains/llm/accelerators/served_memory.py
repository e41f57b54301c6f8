"""Memory of a served language model: bytes of weights and caches, and the requests whose caches fit.

The times that reading them and the arithmetic take at the peaks of the GPUs bound every measured latency from below.
The number format of the caches is not published with the measurements: it is taken as that of the arithmetic.

Sources: bytes of a decoding step by Pope et al., Efficiently Scaling Transformer Inference, 2022, arXiv 2211.05102;
expected number of experts that a batch touches, from independent choices of each token; Little's law.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

Columns = Mapping[str, Any] | pd.DataFrame
"""Deployments by column: cells, or a frame."""

WEIGHT_BYTES = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp4": 0.5625,
    "int4": 0.53,
}
"""Bytes of a weight with its scales."""
CACHE_BYTES = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp4": 1.0,
    "int4": 2.0,
}
"""Bytes of an element of the caches by number format of the weights; 4-bit integers are computed in bfloat16."""
USABLE_MEMORY = 0.9
"""Share of the memory that serving software takes for weights and caches; the default of vLLM."""
SHARED_OF_ACTIVE = 0.35
"""Share of the active parameters of a mixture that every token uses: attention, embeddings, shared experts."""
PEAKS = {
    "bf16": "bf16_tflops",
    "int4": "bf16_tflops",
    "fp8": "fp8_tflops",
    "fp4": "fp4_tflops",
}
"""Column of the peak of each number format."""
GIB = 2.0**30
_BILLION = 1e9
_HALF = 0.5


def weight_bytes(known: Columns) -> np.ndarray:
    """Return the bytes of the weights, (n,); an unknown format is missing."""
    return np.asarray(_of(known, "total_params_1e9") * _BILLION * _by_format(known, WEIGHT_BYTES))


def cached_bytes(known: Columns, share: float = _HALF) -> np.ndarray:
    """Return the bytes of the key-value cache of one request after a share of its answer, (n,)."""
    length = _of(known, "input_tokens") + share * _of(known, "output_tokens")
    in_window = np.minimum(length, _of(known, "window"))
    tokens = _of(known, "full_layers") * length + _of(known, "window_layers") * in_window
    return np.asarray(_of(known, "kv_elements") * tokens * _by_format(known, CACHE_BYTES))


def usable_bytes(known: Columns) -> np.ndarray:
    """Return the memory that weights and caches may take, (n,) bytes."""
    return np.asarray(USABLE_MEMORY * _of(known, "gpus") * _of(known, "memory_gib") * GIB)


def running_requests(known: Columns) -> np.ndarray:
    """Return the requests that a step serves, (n,): those whose caches fit beside the weights, at least one."""
    requests = _of(known, "concurrency")
    cached = cached_bytes(known)
    with np.errstate(divide="ignore", invalid="ignore"):
        fitting = (usable_bytes(known) - weight_bytes(known)) / np.where(cached > 0, cached, np.nan)
    return np.asarray(np.where(requests <= fitting, requests, np.maximum(fitting, 1.0)))


def experts_used(known: Columns, running: np.ndarray) -> np.ndarray:
    """Return the expected share of the experts that a step of the running requests uses, (n,); 1 for a dense model."""
    experts = _of(known, "experts")
    share = _of(known, "experts_per_token") / np.where(experts > 0, experts, np.nan)
    return np.where(experts > 0, 1 - (1 - share) ** running, 1.0)


def weights_read(known: Columns, running: np.ndarray) -> np.ndarray:
    """Return the bytes of the weights that a step of the running requests reads, (n,)."""
    total = weight_bytes(known)
    shared = SHARED_OF_ACTIVE * _of(known, "active_params_1e9") / _of(known, "total_params_1e9")
    read = total * (shared + (1 - shared) * experts_used(known, running))
    return np.where(_of(known, "experts") > 0, read, total)


def peak_tflops(known: Columns) -> np.ndarray:
    """Return the peak of the number format, (n,); formats that a GPU cannot compute are computed in bfloat16."""
    peak = np.full(len(known["precision"]), np.nan)
    formats = _formats(known)
    full = _of(known, "bf16_tflops")
    for name, column in PEAKS.items():
        stated = _of(known, column)
        peak = np.where(formats == name, np.where(np.isnan(stated), full, stated), peak)
    return peak


def bandwidth(known: Columns) -> np.ndarray:
    """Return the bytes that the GPUs together read from memory in a ms, (n,)."""
    return np.asarray(_of(known, "gpus") * _of(known, "memory_gb_per_s") * 1e6)


def reading_time(known: Columns, running: np.ndarray) -> np.ndarray:
    """Return the time that reading the weights and the caches of a step takes at the bandwidth, (n,) ms."""
    return np.asarray((weights_read(known, running) + running * cached_bytes(known)) / bandwidth(known))


def computing_time(known: Columns, tokens: np.ndarray) -> np.ndarray:
    """Return the time that the matrix products of tokens take at the peak of the format, (n,) ms."""
    return np.asarray(2 * _of(known, "active_params_1e9") * tokens / (_of(known, "gpus") * peak_tflops(known)))


def shortest_step(known: Columns, ttft: np.ndarray | pd.Series, tpot: np.ndarray | pd.Series) -> np.ndarray:
    """Return the time in ms that reading the weights and caches of the decoding requests takes at the bandwidth.

    By Little's law the requests that decode are the share of those in progress that decoding has of the whole latency,
    so requests that wait for their first token count for nothing.
    """
    decoding = np.maximum(_of(known, "output_tokens") - 1, 1) * np.asarray(tpot)
    return reading_time(known, _of(known, "concurrency") * decoding / (decoding + np.asarray(ttft)))


def shortest_latencies(known: Columns, running: np.ndarray) -> dict[str, np.ndarray]:
    """Return the time that no first token and no further one of the running requests can be below, (n,) ms each.

    A step reads its weights and caches, and computes a token of every request. A prompt reads the weights that its
    tokens use, and computes them; its attention is left out, since some models attend to a part of a prompt.
    """
    prompt = _of(known, "input_tokens")
    return {
        "ttft": np.maximum(weights_read(known, prompt) / bandwidth(known), computing_time(known, prompt)),
        "tpot": np.maximum(reading_time(known, running), computing_time(known, running)),
    }


def add_backlog(known: Columns, running: np.ndarray, ttft: np.ndarray, tpot: np.ndarray) -> np.ndarray:
    """Return the time to a first token with the wait of the requests that do not fit in memory, (n,) ms.

    By Little's law a request is in progress as many times as long as its own service as there are requests for each one
    that runs.
    """
    waiting = _of(known, "concurrency") / running - 1
    return np.asarray(ttft + waiting * (ttft + _of(known, "output_tokens") * tpot))


def _of(known: Columns, name: str) -> np.ndarray:
    return np.asarray(known[name], dtype=float)


def _formats(known: Columns) -> np.ndarray:
    return np.asarray(known["precision"], dtype=object)


def _by_format(known: Columns, values: Mapping[str, float]) -> np.ndarray:
    return np.array([values.get(name, np.nan) for name in _formats(known).tolist()], dtype=float)
