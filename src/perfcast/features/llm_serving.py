"""Derived characteristics of a served language model: the physical times of a decoding step and of a prompt.

Time of a decoding step of b requests: weights and caches are read, tokens computed, activations exchanged between GPUs,
and prompts of other requests computed in between. A first token waits for its prompt and for those in the queue.
Requests whose caches do not fit in memory wait until others end.

Source: roofline of inference by Pope et al., Efficiently Scaling Transformer Inference, 2022, arXiv 2211.05102.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.data.accelerators.served_memory import (
    WEIGHT_BYTES,
    cached_bytes,
    experts_used,
    running_requests,
    weights_read,
)
from perfcast.features.feature_math import append, feature, ratio, require
from perfcast.schema.table import Table, Tag

REQUIRES = (
    *("input_tokens", "output_tokens", "concurrency", "gpus", "precision"),
    *("total_params_1e9", "active_params_1e9", "layers", "hidden", "kv_elements", "full_layers", "window_layers"),
    *("window", "experts", "experts_per_token"),
    *("bf16_tflops", "fp8_tflops", "fp4_tflops", "memory_gb_per_s", "memory_gib", "link_gb_per_s"),
)
_ACTIVATION_BYTES = 2.0
_TIMES = ("t_weights", "t_cache", "t_decode", "t_exchange", "t_mixed", "t_step", "t_prompt", "t_queue")
_LOGS = (*("input_tokens", "output_tokens", "concurrency", "gpus"), *_TIMES, "step_layers", "tokens_per_expert")


def _time(name: str, meaning: str, group: str = "layout") -> tuple[str, str, str, str]:
    return name, group, "ms", meaning


_COLUMNS = (
    feature(*_time("t_weights", "reading the weights of a step at the memory's bandwidth"), tags=[Tag.COST]),
    feature(*_time("t_cache", "reading the key-value caches of a step"), tags=[Tag.COST]),
    feature(*_time("t_decode", "computing a token of every request at the peak"), tags=[Tag.COST]),
    feature(*_time("t_exchange", "exchanging the activations of a step between GPUs"), tags=[Tag.COST]),
    feature(*_time("t_mixed", "computing the prompts of others, per step"), tags=[Tag.COST]),
    feature(*_time("t_prompt", "computing a prompt at the peak"), tags=[Tag.COST]),
    feature(*_time("t_queue", "computing the prompts of all requests in progress"), tags=[Tag.COST]),
    feature(*_time("t_wait", "waiting for the prompts of others, as in a queue"), tags=[Tag.COST]),
    feature(*_time("t_backlog", "decoding of the requests before those whose caches do not fit")),
    feature(*_time("t_step", "sum of the times of a step")),
    feature("running", "load", "", "requests that a step serves: those whose caches fit in memory"),
    feature("step_layers", "layout", "", "layers that a step starts one after the other", tags=[Tag.COST]),
    feature("exchange_layers", "layout", "", "layers whose GPUs wait for each other", tags=[Tag.COST]),
    feature("prompt_share", "load", "", "share of a step that computes prompts", high=1),
    feature("weight_share", "load", "", "share of a step that reads weights", high=1),
    feature("exchange_share", "load", "", "share of a step that exchanges activations", high=1),
    feature("experts_touched", "load", "", "expected share of the experts that a step uses", high=1),
    feature("tokens_per_expert", "load", "", "tokens of a step per expert; all for a dense model"),
    feature("memory_use", "layout", "", "weights and caches / memory of the GPUs"),
    feature("balance", "gpu", "FLOP/B", "peak of the number format / memory bandwidth"),
)


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of deployments.

    Terms of the roofline model are tagged COST; their units are ms, so a fitted coefficient is the inverse of the share
    of the peak that is reached.
    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    requests, gpus, layers = frame["concurrency"], frame["gpus"], frame["layers"]
    active, total = frame["active_params_1e9"] * 1e9, frame["total_params_1e9"] * 1e9
    weight = frame["precision"].map(WEIGHT_BYTES).astype("float64")
    peak = gpus * _peak(frame) * 1e9  # per ms
    bandwidth = gpus * frame["memory_gb_per_s"] * 1e6  # per ms
    link = frame["link_gb_per_s"] * 1e6  # per ms
    many = gpus > 1
    cached, running = cached_bytes(frame), running_requests(frame)
    memory = gpus * frame["memory_gib"] * 2**30
    attention = 4 * frame["full_layers"] * frame["input_tokens"] ** 2 * frame["hidden"]
    prompt = (2 * active * frame["input_tokens"] + attention) / peak
    exchanged = 2 * layers * frame["hidden"] * _ACTIVATION_BYTES
    times = {
        "t_weights": weights_read(frame, running) / bandwidth,
        "t_cache": running * cached / bandwidth,
        "t_decode": 2 * active * running / peak,
        "t_exchange": (exchanged * running / link).where(many, 0.0),
        "t_mixed": prompt * running / frame["output_tokens"],
    }
    step = pd.concat(times, axis=1).sum(axis=1, skipna=False)
    values = {
        **times,
        # rho / (1 - rho) prompts wait, where rho is the share of the time that computes prompts
        "t_wait": prompt * ratio(times["t_mixed"], step - times["t_mixed"]),
        "t_prompt": prompt,
        "t_queue": prompt * requests,
        "t_backlog": ratio(requests - running, running) * frame["output_tokens"] * step,
        "t_step": step,
        "running": running,
        "step_layers": layers,
        "exchange_layers": layers.where(many, 0.0),
        "prompt_share": ratio(times["t_mixed"], step),
        "weight_share": ratio(times["t_weights"], step),
        "exchange_share": ratio(times["t_exchange"], step),
        "experts_touched": experts_used(frame, running),
        "tokens_per_expert": running * ratio(frame["experts_per_token"], frame["experts"]).fillna(1.0),
        "memory_use": ratio(total * weight + requests * cached, memory),
        "balance": ratio(peak, bandwidth),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)


def _peak(frame: pd.DataFrame) -> pd.Series:
    """Return the peak of the number format in TFLOP/s; formats that a GPU cannot compute are computed in bfloat16."""
    by_precision = {
        "bf16": frame["bf16_tflops"],
        "int4": frame["bf16_tflops"],
        "fp8": frame["fp8_tflops"],
        "fp4": frame["fp4_tflops"],
    }
    peak = pd.Series(np.nan, index=frame.index)
    for precision, tflops in by_precision.items():
        peak = peak.where(frame["precision"] != precision, tflops.fillna(frame["bf16_tflops"]))
    return peak
