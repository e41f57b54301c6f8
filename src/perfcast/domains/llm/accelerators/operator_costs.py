"""Operations and bytes of the operators of language models, from their shapes.

Sources: attention and matrix products by Pope et al., Efficiently Scaling Transformer Inference, 2022, arXiv
2211.05102; the expected number of experts touched from independent choices of every token; volumes of ring collectives
by Patarasu and Yuan, Bandwidth optimal all-reduce algorithms, 2009, JPDC 69(2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

WEIGHT_BYTES = {
    "bfloat16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "nvfp4": 0.5625,
    "int4_wo": 0.53,
    "w4a16_mxfp4": 0.53125,
    "half": 2.0,
}
"""Bytes of a weight, with its scales, or of an element of a cache or a message."""
COMPUTE_BYTES = {
    "fp8": 1.0,
    "fp8_block": 1.0,
    "nvfp4": 0.5,
}
"""Bytes of a number that the matrix units multiply; other formats are widened to bfloat16."""
FULL_BYTES = 2.0
"""Bytes of a number that no format shortens: outputs, activations of a mixture, queries."""

RING_PASSES = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
}
"""Passes of a message over the ring."""

Amounts = Mapping[str, np.ndarray]
"""`flops`, `bytes_input`, `bytes_weights` (or of the cache), `bytes_output` and `bytes_link` by name, (n,) each."""


def operator_amounts(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the operations and bytes of every operator; 0 where an operator has none, missing where it is unknown.

    Args:
        frame: Columns `op`, `dtype`, and the columns of the shape of each operator.

    Returns:
        Amounts by name, see `Amounts`; operations in FLOP, bytes in B.
    """
    amounts = {
        name: np.full(len(frame), np.nan)
        for name in ("flops", "bytes_input", "bytes_weights", "bytes_output", "bytes_link")
    }
    op = frame["op"].astype("str").to_numpy()
    for name, derive in _OPERATORS.items():
        rows = np.flatnonzero(op == name)
        if len(rows):
            part = frame.iloc[rows]
            derived = derive(part)
            for amount, values in amounts.items():
                values[rows] = derived.get(amount, 0.0)
    return amounts


def peak_tflops(frame: pd.DataFrame) -> np.ndarray:
    """Return the peak of the number format that an operator computes in, in TFLOP/s.

    A GPU without the peak of a format computes it in the next wider one. Attention is computed in bfloat16.
    """
    compute = compute_bytes(frame)
    wide = _numbers(frame, "bf16_tflops")
    middle = np.fmax(_numbers(frame, "fp8_tflops"), wide)
    narrow = np.fmax(_numbers(frame, "fp4_tflops"), middle)
    return np.select([compute < 1, compute < FULL_BYTES], [narrow, middle], wide)


def compute_bytes(frame: pd.DataFrame) -> np.ndarray:
    """Return the bytes of a number that the matrix units multiply."""
    by_format = frame["dtype"].astype("str").map(COMPUTE_BYTES).fillna(FULL_BYTES).to_numpy(dtype=float)
    return np.where(frame["op"].isin(["gemm", "moe"]), by_format, FULL_BYTES)


def weight_bytes(frame: pd.DataFrame) -> np.ndarray:
    """Return the bytes of a weight, or of an element of a cache or a message."""
    return np.asarray(frame["dtype"].astype("str").map(WEIGHT_BYTES), dtype=float)


def light_time(frame: pd.DataFrame, amounts: Amounts) -> np.ndarray:
    """Return the shortest time that the peak, the memory and the links allow, in ms."""
    moved = amounts["bytes_input"] + amounts["bytes_weights"] + amounts["bytes_output"]
    compute = amounts["flops"] / peak_tflops(frame) / 1e9
    memory = moved / _numbers(frame, "memory_gb_per_s") / 1e6
    over_link = amounts["bytes_link"]
    link = np.where(over_link > 0, over_link / _numbers(frame, "link_gb_per_s") / 1e6, 0.0)  # one GPU has no link
    return np.asarray(np.maximum.reduce([compute, memory, link]))


def attended(length: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Return the pairs of a query and a key of a causal prompt: s^2 / 2, or w s - w^2 / 2 within a window."""
    inside = np.where((window > 0) & (window < length), window, length)
    return np.asarray(inside * length - inside**2 / 2)


def experts_touched(pairs: np.ndarray, experts: np.ndarray) -> np.ndarray:
    """Return the expected number of experts that some pairs of a token and an expert use."""
    return np.asarray(experts * -np.expm1(pairs * np.log1p(-np.minimum(1 / experts, 1 - 1e-12))))


def _numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    return np.asarray(frame[name], dtype=float)


def _gemm(frame: pd.DataFrame) -> Amounts:
    m = _numbers(frame, "m")
    n = _numbers(frame, "n")
    k = _numbers(frame, "k")
    weight = weight_bytes(frame)
    return {
        "flops": 2 * m * n * k,
        "bytes_input": weight * m * k,
        "bytes_weights": weight * n * k,
        "bytes_output": FULL_BYTES * m * n,
    }


def _attention(frame: pd.DataFrame, queries: np.ndarray | float, pairs: np.ndarray, read: np.ndarray) -> Amounts:
    """Return the amounts of attention.

    Args:
        queries: New tokens of a sequence.
        pairs: Pairs of a query and a key of a sequence.
        read: Tokens of a sequence whose keys and values are read.
    """
    batch = _numbers(frame, "batch")
    heads = _numbers(frame, "heads")
    dim = _numbers(frame, "head_dim")
    query = FULL_BYTES * batch * queries * heads * dim
    return {
        "flops": 4 * batch * heads * dim * pairs,
        "bytes_input": query,
        "bytes_weights": 2 * batch * read * _numbers(frame, "kv_heads") * dim * weight_bytes(frame),
        "bytes_output": query,
    }


def _context(frame: pd.DataFrame) -> Amounts:
    length = _numbers(frame, "sequence")
    return _attention(frame, length, attended(length, _numbers(frame, "window")), length)


def _generation(frame: pd.DataFrame) -> Amounts:
    length = _numbers(frame, "sequence")
    window = _numbers(frame, "window")
    read = np.where(window > 0, np.minimum(length, window), length)
    return _attention(frame, 1.0, read, read)


def _mixture(frame: pd.DataFrame) -> Amounts:
    tokens = _numbers(frame, "tokens")
    hidden = _numbers(frame, "hidden")
    inner = _numbers(frame, "expert_hidden")
    top_k = _numbers(frame, "top_k")
    experts = _numbers(frame, "experts")
    tp = _numbers(frame, "tp")
    ep = _numbers(frame, "ep")
    pairs = tokens * top_k / ep
    inner = inner / tp
    return {
        "flops": 6 * pairs * hidden * inner,
        "bytes_input": pairs * (hidden + 2 * inner) * FULL_BYTES,
        "bytes_weights": experts_touched(pairs, experts / ep) * 3 * hidden * inner * weight_bytes(frame),
        "bytes_output": pairs * (hidden + inner) * FULL_BYTES,
    }


def _collective(frame: pd.DataFrame) -> Amounts:
    gpus = _numbers(frame, "gpus")
    passes = frame["op"].astype("str").map(RING_PASSES).to_numpy(dtype=float)
    return {"bytes_link": _numbers(frame, "bytes_message") * passes * (gpus - 1) / gpus}


_OPERATORS: dict[str, Callable[[pd.DataFrame], Amounts]] = {
    "gemm": _gemm,
    "context_attention": _context,
    "generation_attention": _generation,
    "moe": _mixture,
    **dict.fromkeys(RING_PASSES, _collective),
}
