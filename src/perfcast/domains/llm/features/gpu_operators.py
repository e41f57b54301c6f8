"""Derived characteristics of an operator on a GPU: times at its peaks, tiles and waves, and ratios that carry over.

Times are those at the peak, the memory bandwidth and the link bandwidth of the GPU, so a fitted coefficient is the
inverse of the share that is reached. Ratios of an operator to its GPU have values in common across GPUs; peaks and
bandwidths as they are have not.

Sources: roofline and ridge point by Williams, Waterman and Patterson, 2009, CACM 52(4); tiles and waves by NVIDIA,
Matrix Multiplication Background User's Guide; amounts: `data.accelerators.operator_costs`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.operator_costs import (
    FULL_BYTES,
    RING_PASSES,
    compute_bytes,
    experts_touched,
    peak_tflops,
    weight_bytes,
)
from perfcast.features.feature_math import append, feature, log, ratio, require
from perfcast.schema.table import Table, Tag

REQUIRES = (
    *("op", "dtype", "m", "n", "k", "batch", "sequence", "heads", "kv_heads", "head_dim", "window"),
    *("tokens", "hidden", "expert_hidden", "top_k", "experts", "tp", "ep", "gpus", "bytes_message"),
    *("flops", "bytes_input", "bytes_weights", "bytes_output", "bytes_link"),
    *("sm_count", "l2_mib", "bf16_tflops", "fp8_tflops", "fp4_tflops", "memory_gb_per_s", "link_gb_per_s"),
)
TILE = 128
"""Rows and columns of a tile, and queries of a block of attention: the usual size on these GPUs."""

_BOUND, _COST = [Tag.BOUND], [Tag.COST]


_COLUMNS = (
    feature("t_compute", "time", "ms", "operations at the peak of the number format", tags=[*_BOUND, *_COST]),
    feature("t_waves", "time", "ms", "operations of whole tiles at the peak, with the last wave full", tags=_COST),
    feature("t_memory", "time", "ms", "all bytes at the memory bandwidth", tags=_BOUND),
    feature("t_cold", "time", "ms", "all bytes at the memory bandwidth where they exceed the second level", tags=_COST),
    feature("t_hot", "time", "ms", "all bytes at the memory bandwidth where the second level holds them", tags=_COST),
    feature("t_convert", "time", "ms", "reading and writing what is converted to a shorter format", tags=_COST),
    feature("t_link", "time", "ms", "bytes over a link at its bandwidth", tags=[*_BOUND, *_COST]),
    feature("mb_per_sm", "time", "MB", "bytes / multiprocessor", tags=_COST),
    feature("waves", "time", "", "waves of tiles or blocks, the last one perhaps not full", tags=_COST),
    feature("wave_steps", "time", "", "waves x steps of their inner loops", tags=_COST),
    feature("converts", "time", "", "1 where operands are converted to a shorter format", high=1, tags=_COST),
    feature("link_steps", "time", "", "steps of a collective, one after the other", tags=_COST),
    feature("log_light", "ratio", "ln(ms)", "logarithm of the longest of the times at the peaks"),
    feature("log_intensity", "ratio", "ln", "logarithm of the arithmetic intensity over the ridge point"),
    feature("log_input_share", "ratio", "ln", "logarithm of the share of the bytes that activations have"),
    feature("log_output_share", "ratio", "ln", "logarithm of the share of the bytes that the output has"),
    feature("log_over_l2", "ratio", "ln", "logarithm of all bytes / second-level cache"),
    feature("log_weights_over_l2", "ratio", "ln", "logarithm of the bytes of weights or cache / second-level cache"),
    feature("log_tiles_per_sm", "ratio", "ln", "logarithm of tiles or blocks / multiprocessors"),
    feature("log_tail", "ratio", "ln", "logarithm of started waves / needed waves: wave quantization"),
    feature("log_padding", "ratio", "ln", "logarithm of the area of the tiles / that of the output: tile quantization"),
    feature(
        "log_tile_depth", "ratio", "ln", "logarithm of the operations of a tile over the output elements: its loop"
    ),
    feature("log_kb_per_sm", "ratio", "ln", "logarithm of KB read / multiprocessor"),
    feature("weight_width", "ratio", "B", "bytes of a weight, with its scales"),
    feature("compute_width", "ratio", "B", "bytes of a number that the matrix units multiply"),
    feature("experts_here", "shape", "", "experts of one GPU"),
    feature("pairs_per_expert", "shape", "", "pairs of a token and an expert per expert that is used: expert load"),
    feature("experts_share", "shape", "", "expected share of the experts of a GPU that are used", high=1),
    feature("queries_per_kv", "shape", "", "query heads per head of keys and values"),
    feature("attended_tokens", "shape", "", "tokens that the last token attends to"),
)


def derive(table: Table) -> Table:
    """Append the derived characteristics to a table of operators.

    Terms of the roofline model are tagged COST, lower bounds of the time BOUND. An operator without a term has 0.
    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    op = frame["op"].astype("str").to_numpy()
    parts = {name: np.asarray(frame[name], dtype=float) for name in REQUIRES if name not in {"op", "dtype"}}
    peak = peak_tflops(frame) * 1e9  # per ms
    bandwidth, link = parts["memory_gb_per_s"] * 1e6, parts["link_gb_per_s"] * 1e6  # per ms
    tiles, area, depth = _tiles(op, parts)
    waves = tiles / parts["sm_count"]
    started = np.ceil(waves)
    moved = parts["bytes_input"] + parts["bytes_weights"] + parts["bytes_output"]
    compute, memory = parts["flops"] / peak, moved / bandwidth
    over_link = np.where(parts["bytes_link"] > 0, parts["bytes_link"] / link, 0.0)
    is_local = ~np.isin(op, list(RING_PASSES))
    passes = pd.Series(op).map(RING_PASSES).to_numpy(dtype=float)
    padded = parts["flops"] * area  # operations of whole tiles
    fits = np.where(is_local, moved, 0.0) / 2**20 <= parts["l2_mib"]
    converts, converted = _conversion(op, frame, parts)
    pairs, here, used = _expert_load(parts)
    attended = np.where(parts["window"] > 0, np.minimum(parts["sequence"], parts["window"]), parts["sequence"])
    values = {
        "t_compute": compute,
        "t_waves": np.where(is_local, padded / peak * np.where(waves > 0, started / waves, 1.0), 0.0),
        "t_memory": memory,
        "t_cold": np.where(fits, 0.0, memory),
        "t_hot": np.where(fits, memory, 0.0),
        "t_convert": converted / bandwidth,
        "t_link": over_link,
        "mb_per_sm": moved / 1e6 / parts["sm_count"],
        "waves": np.where(is_local, started, 0.0),
        "wave_steps": np.where(is_local, started * np.ceil(depth / TILE), 0.0),
        "converts": converts,
        "link_steps": np.where(is_local, 0.0, np.nan_to_num(passes) * (np.nan_to_num(parts["gpus"]) - 1)),
        "log_light": log(np.maximum.reduce([compute, memory, over_link])),
        "log_intensity": log(ratio(compute, memory)),
        "log_input_share": log(ratio(parts["bytes_input"], moved)),
        "log_output_share": log(ratio(parts["bytes_output"], moved)),
        "log_over_l2": log(ratio(np.where(is_local, moved, parts["bytes_message"]) / 2**20, parts["l2_mib"])),
        "log_weights_over_l2": log(ratio(parts["bytes_weights"] / 2**20, parts["l2_mib"])),
        "log_tiles_per_sm": log(waves),
        "log_tail": log(ratio(started, waves)),
        "log_padding": log(area),
        "log_tile_depth": log(depth),
        "log_kb_per_sm": log(ratio(moved / 1e3, parts["sm_count"])),
        "weight_width": weight_bytes(frame),
        "compute_width": np.where(is_local, compute_bytes(frame), np.nan),
        "experts_here": here,
        "pairs_per_expert": ratio(pairs, used),
        "experts_share": ratio(used, here),
        "queries_per_kv": ratio(parts["heads"], parts["kv_heads"]),
        "attended_tokens": attended,
    }
    return append(table, _COLUMNS, values)


def _tiles(op: np.ndarray, parts: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tiles or blocks, their area over that of the output, and the inner length of one. Shapes: (n,) each.

    A product has tiles of its output; a mixture those of the experts that are used; a prompt has blocks of queries of
    a head, and a generated token one block per sequence and head of keys and values.
    """
    pairs, _, used = _expert_load(parts)
    inner = parts["expert_hidden"] / parts["tp"]
    per_expert = ratio(pairs, used)
    gemm = _whole(parts["m"]) * _whole(parts["n"])
    mixture = used * _whole(per_expert) * _whole(2 * inner)
    blocks = _whole(parts["sequence"])
    cached = np.where(parts["window"] > 0, np.minimum(parts["sequence"], parts["window"]), parts["sequence"])
    by_op = {
        "gemm": (gemm, ratio(gemm * TILE**2, parts["m"] * parts["n"]), parts["k"]),
        "moe": (mixture, ratio(_whole(per_expert) * TILE, per_expert), parts["hidden"]),
        "context_attention": (
            parts["batch"] * parts["heads"] * blocks,
            ratio(blocks * TILE, parts["sequence"]),
            cached,
        ),
        "generation_attention": (parts["batch"] * parts["kv_heads"], np.ones(len(op)), cached),
    }
    tiles, area, depth = (np.full(len(op), np.nan) for _ in range(3))
    for name, amounts in by_op.items():
        rows = op == name
        for target, values in zip((tiles, area, depth), amounts, strict=True):
            target[rows] = values[rows]
    return tiles, area, depth


def _conversion(op: np.ndarray, frame: pd.DataFrame, parts: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return where operands are converted, and the bytes of that.

    Activations arrive in bfloat16 and are multiplied in a shorter format: 2 bytes are read and one is written for each.
    A cache in a shorter format is widened as it is read.
    """
    narrow, short = compute_bytes(frame) < FULL_BYTES, weight_bytes(frame) < FULL_BYTES
    activations = np.where(op == "gemm", parts["m"] * parts["k"], parts["tokens"] * parts["hidden"])
    is_attention = np.isin(op, ["context_attention", "generation_attention"])
    converts = narrow | (is_attention & short)
    amounts = np.where(is_attention, parts["bytes_weights"], 3 * activations)
    return converts.astype(float), np.where(converts, amounts, 0.0)


def _expert_load(parts: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of a token and an expert on a GPU, its experts, and how many of them are expected in use."""
    pairs, here = parts["tokens"] * parts["top_k"] / parts["ep"], parts["experts"] / parts["ep"]
    return pairs, here, experts_touched(pairs, here)


def _whole(length: np.ndarray) -> np.ndarray:
    """Return the number of tiles that hold a length."""
    return np.asarray(np.ceil(length / TILE))
