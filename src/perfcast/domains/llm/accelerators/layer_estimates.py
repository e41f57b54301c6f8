"""Shapes of the layers of a model that the catalog does not have, told from its size, width and cache.

Heads have 128 elements; a cache that is no whole number of such heads is a latent one, as in DeepSeek's models. The
feed-forward part is what the parameters leave. Linear attention has the widths of Qwen3.5.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.accelerator_catalog import MODEL_FACTS, read_layers

HEAD_DIM = 128.0
"""Elements of a head of most models since Llama 2."""
VOCABULARY = 128_256.0
"""Tokens of the vocabulary of Llama 3."""
ROPE_DIM, LATENT_KEY_DIM, QUERY_RANK = 64.0, 192.0, 1536.0
"""Shape of latent attention. Source: DeepSeek-V3, 2024, arXiv 2412.19437, section 4.2."""
LINEAR_KEYS, LINEAR_VALUES = 0.5, 2.0
"""Widths of linear attention over the width of the model."""

_MATRICES = 3.0
"""Matrices of a gated feed-forward part."""


def estimate_layers(models: pd.DataFrame) -> pd.DataFrame:
    """Return the shape of the layers of each model; missing where a fact is.

    Args:
        models: Columns of `MODEL_FACTS`.

    Returns:
        The columns of `read_layers` but the source, on the index of the models.
    """
    fact = {name: models[name].to_numpy(dtype=float) for name in MODEL_FACTS}
    layers, hidden, experts = fact["layers"], fact["hidden"], fact["experts"]
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
            **{"heads": heads, "kv_heads": kv_heads},
            "key_dim": np.where(latent, LATENT_KEY_DIM, HEAD_DIM),
            "value_dim": HEAD_DIM,
            "query_rank": np.where(latent, QUERY_RANK, 0.0),
            "cache_rank": np.where(latent, np.maximum(fact["kv_elements"] - ROPE_DIM, 0.0), 0.0),
            "rope_dim": np.where(latent, ROPE_DIM, 0.0),
            **{"gated": 0.0, "attended": 0.0},
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
    names = [name for name in read_layers().columns if name != "source"]
    return pd.DataFrame(shape, index=models.index)[names].astype(float).mask(pd.Series(unknown, models.index), axis=0)
