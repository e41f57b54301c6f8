"""Short fields of a deployed language model: GPU, model, load, layout, number format and serving software."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfcast.domains.llm.accelerators.typed_names import (
    find_backend,
    find_gpu,
    find_model,
    find_precision,
)
from perfcast.inference.machine_fields import (
    Cell,
    Field,
    Reading,
    alias_field,
    counted_field,
)
from perfcast.inference.rules.presentation import DerivedOutput


def _name_field(name: str, meaning: str, example: str, find: Callable[[str], str | None], *aliases: str) -> Field:
    """Return a field of the column of the same name; a name that no table lists stays as it was typed."""
    return Field(
        name,
        meaning,
        example,
        (name,),
        lambda text: Reading({name: find(text) or text}),
        aliases,
    )


def _read_model(text: str) -> Reading:
    known = find_model(text)
    cells: dict[str, Cell] = {"model": text if known is None else known.name}
    if known is not None and known.precision:
        cells["precision"] = known.precision
    return Reading(cells)


DEPLOYMENT_FIELDS = (
    counted_field(_name_field("gpu", "the GPU's name", "H200", find_gpu), "tensor_parallel", find_gpu),
    Field(
        "model",
        "the model's name, or a config.json file",
        "llama-3.1-70b",
        ("model", "precision"),
        _read_model,
    ),
    alias_field(
        "batch",
        "concurrency",
        "requests in progress at once",
        "32",
        "batch-size",
        "batch_size",
    ),
    alias_field("input", "input_tokens", "tokens of a prompt", "2048", "isl"),
    alias_field("output", "output_tokens", "tokens of an answer", "256", "osl"),
    alias_field("tensor-parallel", "tensor_parallel", "GPUs that share each layer", "4", "tp"),
    alias_field(
        "pipeline-parallel",
        "pipeline_parallel",
        "GPUs that share the layers in turn",
        "1",
        "pp",
    ),
    alias_field(
        "attention-dp",
        "attention_data_parallel",
        "copies of the attention layers",
        "1",
        "dp",
    ),
    alias_field(
        "expert-parallel",
        "moe_expert_parallel",
        "GPUs that share the experts of a layer",
        "1",
        "ep",
    ),
    alias_field(
        "moe-tensor-parallel",
        "moe_tensor_parallel",
        "GPUs that share each expert",
        "4",
        "moe-tp",
    ),
    _name_field("precision", "number format of the weights", "fp8", find_precision),
    _name_field("backend", "serving software", "vllm", find_backend),
)


def _tokens_per_second(scores: Mapping[str, Any], cells: Mapping[str, Any]) -> Any:
    """Return output tokens per second and user. Units: scores ms."""
    return 1000 * cells["output_tokens"] / (scores["ttft"] + scores["tpot"] * cells["output_tokens"])


_SECONDS_OF_ANSWER = "output / (ttft + tpot x output)"
_TASKS = ("ttft", "tpot")
_LOAD = ("output_tokens", "concurrency", "gpus")
DERIVED_OUTPUTS = (
    DerivedOutput(
        "tokens_per_second",
        "tokens/s",
        f"batch x {_SECONDS_OF_ANSWER}",
        _TASKS,
        _LOAD,
        lambda scores, cells: _tokens_per_second(scores, cells) * cells["concurrency"],
    ),
    DerivedOutput(
        "tokens_per_second_per_user",
        "tokens/s",
        _SECONDS_OF_ANSWER,
        _TASKS,
        ("output_tokens",),
        _tokens_per_second,
    ),
    DerivedOutput(
        "tokens_per_second_per_gpu",
        "tokens/s",
        f"batch x {_SECONDS_OF_ANSWER} / GPUs",
        _TASKS,
        _LOAD,
        lambda scores, cells: _tokens_per_second(scores, cells) * cells["concurrency"] / cells["gpus"],
    ),
)
"""Throughput of a deployment that always has a batch of requests in progress."""
