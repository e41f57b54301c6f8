"""Operators of a served language model: those of a decoding step and those of a prompt, from the shapes of its layers.

A layer's attention and dense parts are shared by the GPUs of tensor parallelism, its experts by all GPUs of a layer;
copies of the attention each serve a share of the requests. Latent attention is computed as one head of keys and values
whose bytes and operations are those of the latent cache. Norms, rotations, sampling and the state of linear attention
have no measured operator.

The times of the parts of a request add up from those of the operators: a step of all requests that run, the prompts of
others between two steps, the prompt of a request, and its wait for other prompts.

Sources: config.json of each model (`llm_layers.csv`); latent attention: DeepSeek-V2, 2024, arXiv 2405.04434, section
2.1; sharing of layers: Shoeybi et al., Megatron-LM, 2019, arXiv 1909.08053.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.accelerator_catalog import (
    MODEL_FACTS,
    read_gpus,
    read_layers,
)
from perfcast.domains.llm.accelerators.operator_costs import light_time, operator_amounts

Values = np.ndarray | float

STEP = "step"
PROMPT = "prompt"
PRODUCTS = "products"
EXPERTS = "experts"
ATTENTION = "attention"
EXCHANGE = "exchange"
"""Classes of operators of a step."""
PARTS = {
    PRODUCTS: "matrix products of a step",
    EXPERTS: "routed experts of a step",
    ATTENTION: "attention of a step",
    EXCHANGE: "exchanges between the GPUs of a step",
    "mixed": "operators of the prompts of others, per step",
    "prompt": "operators of a prompt",
    "wait": "operators of the prompts that are waited for, as in a queue",
    "queue": "operators of the prompts of all requests in progress",
}
"""Meaning of the parts of a request's time."""

SHAPE = (
    "m",
    "n",
    "k",
    "batch",
    "sequence",
    "heads",
    "kv_heads",
    "head_dim",
    "window",
    "tokens",
    "hidden",
    "expert_hidden",
    "top_k",
    "experts",
    "tp",
    "ep",
    "bytes_message",
    "gpus",
)
PEAKS = ("bf16_tflops", "fp8_tflops", "fp4_tflops", "memory_gb_per_s", "link_gb_per_s")
"""Facts of the GPU that the speed of light of an operator depends on."""
_LATENT_DIM = 0.5
_LATENT_SHARE = 2.0
"""Latent attention reads one vector as key and value: half its elements each."""
_ACTIVATION_BYTES = 2.0
_FULL = "bf16"
_SHARED_FORMATS = ("fp4", "int4")
_DTYPES = {
    "bf16": "bfloat16",
    "fp8": "fp8",
    "fp4": "nvfp4",
    "int4": "int4_wo",
}
"""Number format of the operator tables by number format of the weights."""
_CACHE_DTYPE = "fp8"
_MESSAGE_DTYPE = "half"
_QUANTIZED_EXPERTS_ALONE = frozenset(["gptoss", "kimi"])
"""Families whose 4-bit checkpoints keep attention in bfloat16."""


@dataclass(frozen=True)
class _Load:
    """Tokens of a step or of a prompt. Shapes: (n,) each."""

    phase: str
    batch: np.ndarray
    """Sequences per copy of the attention."""
    length: np.ndarray
    """Tokens that a new token attends to, or tokens of the prompt."""
    new: np.ndarray
    """New tokens per copy of the attention."""
    everywhere: np.ndarray
    """New tokens of all copies."""


def list_operators(deployments: pd.DataFrame) -> pd.DataFrame:
    """Return one row per deployment, phase and operator.

    Args:
        deployments: Columns `model_family`, `gpu`, `precision`, `input_tokens`, `output_tokens`, `running`, the shape
            of the model, the layout and `PEAKS`.

    Returns:
        `place` (the number of the deployment), `phase`, `part`, `op`, `gpu`, `dtype`, `count` (times per step or
        prompt), `PEAKS` and `SHAPE`. The layers of a model that the catalog lacks are estimated;
            none where its facts are missing.
    """
    texts = {name: deployments[name].astype("object") for name in ("model_family", "gpu", "precision")}
    known = deployments.assign(**texts).reset_index(drop=True)
    layers = read_layers().drop(columns="source").reindex(known["model_family"]).reset_index(drop=True).astype(float)
    if layers["heads"].isna().any():
        layers = layers.fillna(estimate_layers(known))
    frame = known.assign(**{f"{name}_of_layer": layers[name] for name in layers.columns})
    copies = _numbers(frame, "attention_data_parallel")
    batch = np.maximum(_numbers(frame, "running") / copies, 1.0)
    length = _numbers(frame, "input_tokens") + _numbers(frame, "output_tokens") / 2
    prompt = _numbers(frame, "input_tokens")
    step = _Load(STEP, batch, length, batch, np.maximum(_numbers(frame, "running"), 1.0))
    first = _Load(PROMPT, np.ones(len(frame)), prompt, prompt, prompt)
    parts = [part for load in (step, first) for part in _operators(frame, load)]
    operators = pd.concat(parts, ignore_index=True)
    return operators[operators["count"] > 0].reset_index(drop=True)


def light_of(frame: pd.DataFrame) -> np.ndarray:
    """Return the time of every operator at the peaks of its GPU, in ms; peaks without a column are the catalog's."""
    facts = read_gpus().reindex(frame["gpu"]).reset_index(drop=True).set_index(frame.index)
    full = frame.assign(**{name: facts[name] for name in facts.columns if name not in frame})
    return light_time(full, operator_amounts(full))


def add_parts(operators: pd.DataFrame, times: np.ndarray, deployments: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the time of every part of `PARTS` for every deployment.

    Args:
        operators: Of these deployments, from `list_operators`.
        times: Of one execution of each operator, in ms. Shape: (operators,).
        deployments: As for `list_operators`, and `concurrency`.

    Returns:
        Times in ms by part, 0 where a deployment has no such operator; missing where a time is. Shapes: (deployments,).
    """
    size = len(deployments)
    place = operators["place"].to_numpy()
    spent = times * operators["count"].to_numpy()
    phase = operators["phase"].to_numpy()
    part = operators["part"].to_numpy()

    def total(rows: np.ndarray) -> np.ndarray:
        return np.bincount(place[rows], spent[rows], minlength=size)

    step = {name: total((phase == STEP) & (part == name)) for name in (PRODUCTS, EXPERTS, ATTENTION, EXCHANGE)}
    prompt = total(phase == PROMPT)
    copies = _numbers(deployments, "attention_data_parallel")
    mixed = prompt * _numbers(deployments, "running") / copies / _numbers(deployments, "output_tokens")
    # rho / (1 - rho) prompts wait, where rho is the share of the time that computes prompts
    whole = np.sum(list(step.values()), axis=0)
    wait = prompt * mixed / np.where(whole > 0, whole, np.nan)
    queue = prompt * _numbers(deployments, "concurrency") / copies
    parts = {
        **step,
        "mixed": mixed,
        "prompt": prompt,
        "wait": wait,
        "queue": queue,
    }
    known = np.bincount(place, minlength=size) > 0
    return {name: np.where(known, values, np.nan) for name, values in parts.items()}


def _dtype(part: str, stated: pd.Series) -> pd.Series | str:
    if part == EXCHANGE:
        return _MESSAGE_DTYPE
    return _CACHE_DTYPE if part == ATTENTION else stated.astype("str").map(_DTYPES)


def _operators(frame: pd.DataFrame, load: _Load) -> Iterator[pd.DataFrame]:
    yield from _attention(frame, load)
    yield from _feed_forward(frame, load)
    yield from _exchanges(frame, load)


def _attention(frame: pd.DataFrame, load: _Load) -> Iterator[pd.DataFrame]:
    """Yield the products around attention, and attention itself."""
    of = {name: _numbers(frame, f"{name}_of_layer") for name in _LAYER}
    hidden = _numbers(frame, "hidden")
    tp = _numbers(frame, "tensor_parallel")
    layers = _numbers(frame, "layers")
    linear = of["linear_layers"]
    latent = of["cache_rank"] > 0
    full = layers - of["linear_layers"]
    heads = of["heads"]
    keys = of["key_dim"]
    values = of["value_dim"]
    ranks = of["query_rank"] + of["cache_rank"] + of["rope_dim"]
    per_kv = np.maximum(of["kv_heads"] / tp, 1.0)
    queries = heads / tp * (1 + of["gated"]) * keys + 2 * per_kv * keys
    products = (
        (np.where(latent, 0.0, full), queries, hidden),
        (np.where(latent, full, 0.0), ranks, hidden),
        (
            np.where(latent, full, 0.0),
            heads / tp * keys,
            of["query_rank"],
        ),
        (
            np.where(latent, full, 0.0),
            heads / tp * (keys - of["rope_dim"] + values),
            of["cache_rank"],
        ),
        (full, hidden, heads / tp * values),
        (
            linear,
            (2 * of["linear_keys"] + 2 * of["linear_values"]) / tp,
            hidden,
        ),
        (linear, hidden, of["linear_values"] / tp),
    )
    for count, n, k in products:
        yield _rows(frame, load, PRODUCTS, "gemm", count, m=load.new, n=n, k=k)
    yield _rows(
        frame,
        load,
        PRODUCTS,
        "gemm",
        1.0,
        precision=_FULL,
        m=load.batch,
        n=of["vocabulary"] / tp,
        k=hidden,
    )
    windowed = _numbers(frame, "window_layers")
    if load.phase == STEP:
        # one vector of the latent cache serves as key and value of all heads
        width = of["cache_rank"] + of["rope_dim"]
        work = _LATENT_SHARE * (width + of["cache_rank"]) / (2 * np.maximum(width, 1.0))
        dims = {
            "heads": np.where(latent, heads / tp * work, heads / tp),
            "kv_heads": np.where(latent, 1.0, per_kv),
            "head_dim": np.where(latent, width * _LATENT_DIM, keys),
        }
    else:
        dims = {
            "heads": heads / tp,
            "kv_heads": np.where(latent, heads / tp, per_kv),
            "head_dim": (keys + values) / 2,
        }
    op = "generation_attention" if load.phase == STEP else "context_attention"
    sequence = {"batch": load.batch, "sequence": load.length, **dims}
    yield _rows(frame, load, ATTENTION, op, full - windowed, **sequence, window=of["attended"])
    yield _rows(frame, load, ATTENTION, op, windowed, **sequence, window=_numbers(frame, "window"))


def _feed_forward(frame: pd.DataFrame, load: _Load) -> Iterator[pd.DataFrame]:
    """Yield the products of dense layers and shared experts, the router, and the routed experts."""
    of = {name: _numbers(frame, f"{name}_of_layer") for name in _LAYER}
    hidden = _numbers(frame, "hidden")
    tp = _numbers(frame, "tensor_parallel")
    experts = _numbers(frame, "experts")
    mixtures = np.where(experts > 0, _numbers(frame, "layers") - of["dense_layers"], 0.0)
    for count, inner in (
        (of["dense_layers"], of["ffn_hidden"]),
        (mixtures, of["shared_hidden"]),
    ):
        used = np.where(inner > 0, count, 0.0)
        yield _rows(
            frame,
            load,
            PRODUCTS,
            "gemm",
            used,
            m=load.new,
            n=2 * inner / tp,
            k=hidden,
        )
        yield _rows(frame, load, PRODUCTS, "gemm", used, m=load.new, n=hidden, k=inner / tp)
    yield _rows(
        frame,
        load,
        PRODUCTS,
        "gemm",
        mixtures,
        precision=_FULL,
        m=load.new,
        n=experts,
        k=hidden,
    )
    yield _rows(
        frame,
        load,
        EXPERTS,
        "moe",
        mixtures,
        tokens=load.everywhere,
        hidden=hidden,
        expert_hidden=of["expert_hidden"],
        top_k=_numbers(frame, "experts_per_token"),
        experts=experts,
        tp=_numbers(frame, "moe_tensor_parallel"),
        ep=_numbers(frame, "moe_expert_parallel"),
    )


def _exchanges(frame: pd.DataFrame, load: _Load) -> Iterator[pd.DataFrame]:
    """Yield the sums after attention and after the feed-forward part, and the exchange between copies."""
    layers = _numbers(frame, "layers")
    tp = _numbers(frame, "tensor_parallel")
    copies = _numbers(frame, "attention_data_parallel")
    width = _numbers(frame, "hidden") * _ACTIVATION_BYTES
    sums = np.where(tp > 1, np.where(copies > 1, 1.0, 2.0) * layers, 0.0)
    yield _rows(frame, load, EXCHANGE, "all_reduce", sums, bytes_message=load.new * width, gpus=tp)
    between = np.where((copies > 1) & (_numbers(frame, "experts") > 0), layers, 0.0)
    for op in ("all_gather", "reduce_scatter"):
        yield _rows(
            frame,
            load,
            EXCHANGE,
            op,
            between,
            bytes_message=load.everywhere * width,
            gpus=tp * copies,
        )


def _rows(
    frame: pd.DataFrame,
    load: _Load,
    part: str,
    op: str,
    count: Values,
    *,
    precision: str | None = None,
    **shape: Values,
) -> pd.DataFrame:
    blank = dict.fromkeys(SHAPE, np.nan)
    stated = frame["precision"] if precision is None else pd.Series(precision, frame.index)
    if part == PRODUCTS:
        is_full = frame["model_family"].isin(list(_QUANTIZED_EXPERTS_ALONE)) & stated.isin(_SHARED_FORMATS)
        stated = stated.where(~is_full, _FULL)
    values: Mapping[str, Values] = {**blank, **shape}
    peaks = {name: _numbers(frame, name) for name in PEAKS}
    sizes = {name: np.broadcast_to(np.asarray(value, dtype=float), len(frame)) for name, value in values.items()}
    return pd.DataFrame(
        {
            "place": np.arange(len(frame)),
            "phase": load.phase,
            "part": part,
            "op": op,
            "gpu": frame["gpu"].astype("str"),
            "dtype": _dtype(part, stated),
            "count": np.where(np.isfinite(_numbers(frame, "heads_of_layer")), count, np.nan),
            **peaks,
            **sizes,
        }
    )


_LAYER = tuple(name for name in read_layers().columns if name != "source")
"""Facts of the shape of a layer."""


def _numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    return np.asarray(frame[name], dtype=float)


HEAD_DIM = 128.0
"""Elements of a head of most models since Llama 2."""
VOCABULARY = 128_256.0
"""Tokens of the vocabulary of Llama 3."""
ROPE_DIM = 64.0
LATENT_KEY_DIM = 192.0
QUERY_RANK = 1536.0
"""Shape of latent attention. Source: DeepSeek-V3, 2024, arXiv 2412.19437, section 4.2."""
LINEAR_KEYS = 0.5
LINEAR_VALUES = 2.0
"""Widths of linear attention over the width of the model."""

_MATRICES = 3.0
"""Matrices of a gated feed-forward part."""


def estimate_layers(models: pd.DataFrame) -> pd.DataFrame:
    """Return the shape of the layers of each model, told from its size, width and cache; missing where a fact is.

    Heads have 128 elements; a cache that is no whole number of such heads is a latent one, as in DeepSeek's models. The
    feed-forward part is what the parameters leave. Linear attention has the widths of Qwen3.5.

    Args:
        models: Columns of `MODEL_FACTS`.

    Returns:
        The columns of `read_layers` but the source, on the index of the models.
    """
    fact = {name: models[name].to_numpy(dtype=float) for name in MODEL_FACTS}
    layers = fact["layers"]
    hidden = fact["hidden"]
    experts = fact["experts"]
    with np.errstate(divide="ignore", invalid="ignore"):
        latent = fact["kv_elements"] % HEAD_DIM != 0
        heads = np.maximum(np.round(hidden / HEAD_DIM), 1.0)
        kv_heads = np.where(latent, heads, np.maximum(fact["kv_elements"] / (2 * HEAD_DIM), 1.0))
        linear = np.maximum(layers - fact["full_layers"] - fact["window_layers"], 0.0)
        attention = hidden * (2 * heads * HEAD_DIM + fact["kv_elements"])
        scale = _MATRICES * hidden * layers
        dense = (fact["total_params_1e9"] * 1e9 - 2 * VOCABULARY * hidden - layers * attention) / scale
        routed = (fact["total_params_1e9"] - fact["active_params_1e9"]) * 1e9 / (experts - fact["experts_per_token"])
        expert = routed / scale
        active = fact["active_params_1e9"] * 1e9 - VOCABULARY * hidden - layers * attention
        shared = active / scale - fact["experts_per_token"] * expert
        mixture = experts > 0
        shape = {
            "heads": heads,
            "kv_heads": kv_heads,
            "key_dim": np.where(latent, LATENT_KEY_DIM, HEAD_DIM),
            "value_dim": HEAD_DIM,
            "query_rank": np.where(latent, QUERY_RANK, 0.0),
            "cache_rank": np.where(latent, np.maximum(fact["kv_elements"] - ROPE_DIM, 0.0), 0.0),
            "rope_dim": np.where(latent, ROPE_DIM, 0.0),
            "gated": 0.0,
            "attended": 0.0,
            "ffn_hidden": np.where(mixture, 0.0, np.maximum(dense, 0.0)),
            "dense_layers": np.where(mixture, 0.0, layers),
            "expert_hidden": np.where(mixture, np.maximum(expert, 0.0), 0.0),
            # less than half an expert is the error of the other estimates
            "shared_hidden": np.where(mixture & (shared > expert / 2), shared, 0.0),
            "linear_layers": linear,
            "linear_keys": np.where(linear > 0, LINEAR_KEYS * hidden, 0.0),
            "linear_values": np.where(linear > 0, LINEAR_VALUES * hidden, 0.0),
            "vocabulary": VOCABULARY,
        }
    unknown = np.isnan([fact[name] for name in MODEL_FACTS if name != "window"]).any(axis=0)
    estimated = pd.DataFrame(shape, index=models.index)[list(_LAYER)].astype(float)
    return estimated.mask(pd.Series(unknown, models.index), axis=0)
