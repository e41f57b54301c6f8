"""Columns of the table of operators."""

from __future__ import annotations

from perfcast.domains.llm.accelerators.accelerator_catalog import GPU_FACTS
from perfcast.schema.declare import category, number
from perfcast.schema.table import Column, Kind, Role, Tag

SHAPES = {
    "gemm": {"m": "m", "n": "n", "k": "k"},
    "context_attention": {
        **{"batch_size": "batch", "isl": "sequence", "num_heads": "heads", "num_key_value_heads": "kv_heads"},
        **{"head_dim": "head_dim", "window_size": "window"},
    },
    "generation_attention": {
        **{"batch_size": "batch", "step": "sequence", "num_heads": "heads", "num_key_value_heads": "kv_heads"},
        **{"head_dim": "head_dim", "window_size": "window"},
    },
    "moe": {
        **{"num_tokens": "tokens", "hidden_size": "hidden", "inter_size": "expert_hidden", "topk": "top_k"},
        **{"num_experts": "experts", "moe_tp_size": "tp", "moe_ep_size": "ep", "distribution": "distribution"},
    },
    "nccl": {"num_gpus": "gpus", "message_size": "message_elements"},
}
"""Table -> column of the file -> column here, in the order of the name of a shape."""

SITES = {
    "gemm": ("n", "k"),
    "context_attention": ("heads", "kv_heads", "head_dim", "window"),
    "generation_attention": ("heads", "kv_heads", "head_dim", "window"),
    "moe": ("hidden", "expert_hidden", "top_k", "experts"),
    "nccl": ("gpus",),
}
"""Table -> columns of a shape that a model's layer fixes: the others vary with the load."""

DTYPES = {
    **{"gemm": "gemm_dtype", "moe": "moe_dtype", "nccl": "nccl_dtype"},
    **{"context_attention": "kv_cache_dtype", "generation_attention": "kv_cache_dtype"},
}
"""Table -> column of the number format."""

_SHAPE = {
    "m": "rows of the product: tokens",
    "n": "columns of the product",
    "k": "inner dimension of the product",
    "batch": "sequences",
    "sequence": "tokens of a prompt, or of the cache of a generated token",
    "heads": "query heads",
    "kv_heads": "heads of keys and values",
    "head_dim": "elements of a head",
    "tokens": "tokens of a step",
    "hidden": "width of the residual stream",
    "expert_hidden": "width of an expert",
    "top_k": "experts that compute a token",
    "experts": "experts of the layer",
    "tp": "GPUs that share each expert",
    "ep": "GPUs that share the experts",
    "bytes_message": "bytes of a message",
}
AMOUNTS = {
    "flops": ("FLOP", "operations"),
    "bytes_input": ("B", "bytes of activations, queries or tokens that are read"),
    "bytes_weights": ("B", "bytes of weights, or of the key-value cache, that are read"),
    "bytes_output": ("B", "bytes that are written"),
    "bytes_link": ("B", "bytes over each link"),
}
"""Unit and meaning of the amounts of an operator."""
_SCALING = ("m", "n", "k", "batch", "sequence", "heads", "tokens", "bytes_message")
_FACTS = {name: fact for name, fact in GPU_FACTS.items() if name != "generation_year"}

COLUMNS = (
    category("result_id", Role.KEY, "shape", "GPU, operator, number format and shape", Tag.ROW),
    category("op", Role.KEY, "shape", "operator", Tag.TASK, Tag.CONFIG),
    category("gpu", Role.KEY, "gpu", "name of the GPU", Tag.ENTITY, Tag.CONFIG),
    category("gpu_family", Role.KEY, "gpu", "GPUs of one architecture and memory", Tag.SLICE),
    Column("architecture_year", Kind.DATE, Role.KEY, "gpu", meaning="year of the architecture", tags=(Tag.TIME,)),
    category("shape_site", Role.KEY, "shape", "operator and the part of the shape that a model's layer fixes"),
    category("shape", Role.KEY, "shape", "shape and number format on any GPU", Tag.CONFIG),
    category("dtype", Role.FEATURE, "shape", "number format of the weights, of the cache or of the message"),
    *(
        number(name, "shape", meaning, tags=(Tag.SCALING,) if name in _SCALING else ())
        for name, meaning in _SHAPE.items()
    ),
    number("window", "shape", "tokens that a token attends to; 0 for all", low=0),
    category("distribution", Role.FEATURE, "shape", "distribution of tokens over experts"),
    number("gpus", "shape", "GPUs that exchange", tags=(Tag.PARALLEL,)),
    *(number(name, "work", meaning, unit=unit, low=0) for name, (unit, meaning) in AMOUNTS.items()),
    *(number(name, "gpu", meaning, unit=unit, low=0) for name, (unit, meaning) in _FACTS.items()),
    Column("latency", Kind.NUMERICAL, Role.TARGET, "shape", "ms", "time of the operator; lower is better", 0),
    Column(
        "faster_than_light",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "shape",
        meaning="1 where the time is below 95 % of what the peak and the memory allow: caches hold the operands",
        low=0,
        high=1,
    ),
    category("backend", Role.PROVENANCE, "software", "software that ran the operator"),
    category("backend_version", Role.PROVENANCE, "software", "version of that software"),
    category("kernel_source", Role.PROVENANCE, "software", "kernel that was chosen; known after the run alone"),
    category("source_file", Role.PROVENANCE, "shape", "file of the row"),
    Column("source_line", Kind.NUMERICAL, Role.PROVENANCE, "shape", meaning="row of that file", low=1),
)
