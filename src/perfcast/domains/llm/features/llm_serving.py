"""Derived characteristics of a served language model: the physical times of a decoding step and of a prompt.

Time of a decoding step of b requests: weights and caches are read, tokens computed, activations exchanged between GPUs,
and prompts of other requests computed in between. A first token waits for its prompt and for those in the queue.
Requests whose caches do not fit in memory wait until others end.

Source: roofline of inference by Pope et al., Efficiently Scaling Transformer Inference, 2022, arXiv 2211.05102.
"""

from __future__ import annotations

import numpy as np

from perfcast.domains import read_columns
from perfcast.domains.llm.accelerators.served_memory import (
    bandwidth,
    cached_bytes,
    computing_time,
    experts_used,
    peak_tflops,
    running_requests,
    weights_read,
)
from perfcast.features.feature_math import append, arrays, ratio
from perfcast.schema.table import Table

REQUIRES = (
    "input_tokens",
    "output_tokens",
    "concurrency",
    "gpus",
    "precision",
    "total_params_1e9",
    "active_params_1e9",
    "layers",
    "hidden",
    "kv_elements",
    "full_layers",
    "window_layers",
    "window",
    "experts",
    "experts_per_token",
    "bf16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "memory_gb_per_s",
    "memory_gib",
    "link_gb_per_s",
)
_ACTIVATION_BYTES = 2.0
_TIMES = (
    "t_weights",
    "t_cache",
    "t_decode",
    "t_exchange",
    "t_mixed",
    "t_step",
    "t_prompt",
    "t_queue",
)
_LOGS = (
    "input_tokens",
    "output_tokens",
    "concurrency",
    "gpus",
    *_TIMES,
    "step_layers",
    "tokens_per_expert",
)


_COLUMNS = read_columns(__package__, "columns.csv", "llm_serving")


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of deployments.

    Terms of the roofline model are tagged COST; their units are ms, so a fitted coefficient is the inverse of the share
    of the peak that is reached.
    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    of = arrays(table, REQUIRES)
    gpus = of["gpus"]
    layers = of["layers"]
    output = of["output_tokens"]
    link = of["link_gb_per_s"] * 1e6  # per ms
    many = gpus > 1
    running = running_requests(of)
    attention = 4 * of["full_layers"] * of["input_tokens"] ** 2 * of["hidden"]
    prompt = computing_time(of, of["input_tokens"]) + attention / (gpus * peak_tflops(of) * 1e9)
    exchanged = 2 * layers * of["hidden"] * _ACTIVATION_BYTES
    times = {
        "t_weights": weights_read(of, running) / bandwidth(of),
        "t_cache": running * cached_bytes(of) / bandwidth(of),
        "t_decode": computing_time(of, running),
        "t_exchange": np.where(many, exchanged * running / link, 0.0),
        "t_mixed": prompt * running / output,
    }
    step = np.sum(list(times.values()), axis=0)
    values = {
        **times,
        # rho / (1 - rho) prompts wait, where rho is the share of the time that computes prompts
        "t_wait": prompt * ratio(times["t_mixed"], step - times["t_mixed"]),
        "t_prompt": prompt,
        "t_queue": prompt * of["concurrency"],
        "t_step": step,
        "running": running,
        "step_layers": layers,
        "exchange_layers": np.where(many, layers, 0.0),
        "prompt_share": ratio(times["t_mixed"], step),
        "weight_share": ratio(times["t_weights"], step),
        "exchange_share": ratio(times["t_exchange"], step),
        "experts_touched": experts_used(of, running),
        "tokens_per_expert": running
        * np.where(
            of["experts"] > 0,
            ratio(of["experts_per_token"], of["experts"]),
            1.0,
        ),
        "balance": ratio(gpus * peak_tflops(of) * 1e9, bandwidth(of)),
    }
    return append(table, _COLUMNS, values, logs=_LOGS)
