"""Columns of the table of deployments."""

from __future__ import annotations

from perfcast.domains.llm.accelerators.accelerator_catalog import (
    GPU_FACTS,
    MODEL_FACTS,
    MODEL_LIMITS,
)
from perfcast.domains.llm.accelerators.step_operators import PARTS
from perfcast.schema.declare import category, number
from perfcast.schema.table import Column, Kind, Role, Tag

QUANTITIES = {"ttft": "time to the first token", "tpot": "time per further token"}
"""Meaning of each task; both in ms."""


_LIMIT = "memory_gib"
"""Memory decides how many requests run and nothing else: no predictor reads it."""


def _limit(group: str, name: str, unit: str, meaning: str) -> Column:
    return Column(name, Kind.NUMERICAL, Role.KEY, group, unit, meaning, 0)


_PARALLEL = {
    "tensor_parallel": "GPUs that share each layer",
    "pipeline_parallel": "GPUs that share the layers in turn",
    "attention_data_parallel": "copies of the attention layers",
    "moe_tensor_parallel": "GPUs that share each expert",
    "moe_expert_parallel": "GPUs that share the experts of a layer",
}
PARALLEL_COLUMNS = tuple(_PARALLEL)
COLUMNS = (
    category("result_id", Role.KEY, "load", "name of the measurement and quantity", Tag.ROW),
    category(
        "quantity",
        Role.KEY,
        "load",
        "measured latency: " + ", ".join(QUANTITIES),
        Tag.TASK,
        Tag.CONFIG,
    ),
    category("model", Role.KEY, "model", "published name of the model"),
    category("model_family", Role.KEY, "model", "models of one shape", Tag.IDENTITY, Tag.SLICE),
    category("gpu", Role.KEY, "gpu", "name of the GPU", Tag.ENTITY, Tag.IDENTITY),
    category("generation", Role.KEY, "gpu", "generation of the GPU", Tag.SLICE),
    category("deployment", Role.KEY, "layout", "everything but the number of concurrent requests"),
    category(
        "configuration",
        Role.KEY,
        "layout",
        "deployment and concurrent requests",
        Tag.BLOCK,
        Tag.CONFIG,
    ),
    Column(
        "measured",
        Kind.DATE,
        Role.KEY,
        "load",
        meaning="day of the measurement",
        tags=(Tag.TIME,),
    ),
    number("input_tokens", "load", "tokens of a prompt", tags=(Tag.SCALING,)),
    number("output_tokens", "load", "tokens of an answer", tags=(Tag.SCALING,)),
    number("concurrency", "load", "requests in progress", tags=(Tag.SCALING,)),
    *(number(name, "layout", meaning) for name, meaning in _PARALLEL.items()),
    number("gpus", "layout", "GPUs of the deployment", tags=(Tag.PARALLEL, Tag.SCALING)),
    category("precision", Role.FEATURE, "layout", "number format of the weights"),
    category("backend", Role.FEATURE, "layout", "serving software", Tag.SLICE, Tag.SETUP),
    *(number(name, "model", meaning, unit=unit, low=0) for name, (unit, meaning) in MODEL_FACTS.items()),
    *(number(name, "gpu", meaning, unit=unit, low=0) for name, (unit, meaning) in GPU_FACTS.items() if name != _LIMIT),
    _limit("gpu", _LIMIT, *GPU_FACTS[_LIMIT]),
    *(_limit("model", name, unit, meaning) for name, (unit, meaning) in MODEL_LIMITS.items()),
    *(
        Column(
            f"part_{name}_slowdown",
            Kind.NUMERICAL,
            Role.KEY,
            "operators",
            meaning=f"measured operators of the GPU / speed of light: {meaning}",
            low=0,
            tags=(Tag.SLOWDOWN,),
        )
        for name, meaning in PARTS.items()
    ),
    Column(
        "latency",
        Kind.NUMERICAL,
        Role.TARGET,
        "load",
        "ms",
        "measured latency; lower is better",
        0,
    ),
    Column(
        "in_progress",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "load",
        meaning="1 where the authors of the measurement call it work in progress",
        low=0,
        high=1,
        tags=(Tag.EXCLUDED,),
    ),
    category("backend_version", Role.PROVENANCE, "layout", "version of the serving software"),
    category("source_file", Role.PROVENANCE, "load", "file of the row"),
    Column(
        "source_line",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "load",
        meaning="line of that file",
        low=1,
    ),
)
