"""Limits of deployments of language models: layouts, the memory of the GPUs, and loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.accelerator_catalog import MODEL_FACTS, MODEL_LIMITS, read_gpus, read_models
from perfcast.domains.llm.accelerators.served_memory import (
    CACHE_BYTES,
    GIB,
    PEAKS,
    USABLE_MEMORY,
    WEIGHT_BYTES,
    cached_bytes,
    usable_bytes,
    weight_bytes,
)
from perfcast.domains.llm.deployment_loads import find_least, predict_latencies
from perfcast.inference.cells import Cells, is_missing
from perfcast.inference.rules.limits import Limits, Violation, name_kinds

PARALLEL = ("tensor_parallel", "pipeline_parallel", "attention_data_parallel")
"""Columns whose product is the number of GPUs."""
EXPERT_PARALLEL = ("moe_tensor_parallel", "moe_expert_parallel")
MAX_GPUS = 1024
_NVIDIA_SOFTWARE = "trtllm"
_LARGEST = {
    "input_tokens": 10_000_000,
    "output_tokens": 10_000_000,
    "concurrency": 1_000_000,
}
SMALLEST_FORMAT = min(WEIGHT_BYTES, key=WEIGHT_BYTES.__getitem__)
SMALLEST_CACHE = min(CACHE_BYTES, key=CACHE_BYTES.__getitem__)


def count_gpus(cells: Cells) -> np.ndarray:
    """Return the GPUs of deployments, (n,): those given, else the product of the layout, whose unstated parts are 1."""
    tensor, *others = (cells[name] for name in PARALLEL)
    stated = [np.where(np.isnan(values), 1.0, values) for values in others]
    product = tensor * np.prod(stated, axis=0)
    return np.asarray(np.where(np.isnan(cells["gpus"]), product, cells["gpus"]))


def can_share(cells: Cells, gpus: np.ndarray) -> np.ndarray:
    """Return where GPUs can share the heads of attention, (n,) bool; unknown heads can be shared.

    The rule of vLLM: query heads are divided, heads of keys and values are divided or repeated.
    """
    heads = np.nan_to_num(cells["heads"])
    kv_heads = np.nan_to_num(cells["kv_heads"])
    shared = np.maximum(np.nan_to_num(gpus, nan=1.0), 1.0)
    divides = kv_heads % shared == 0
    repeats = shared % np.maximum(kv_heads, 1.0) == 0
    return np.asarray((heads % shared == 0) & (divides | repeats))


def smallest_bytes(cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of the weights, and of the caches of one request at its end, (n,) each.

    Those of the smallest format where none is known.
    """

    def fill(smallest: str) -> Cells:
        formats = [name or smallest for name in cells["precision"].tolist()]
        return cells.assign({"precision": np.array(formats, dtype=object)})

    return weight_bytes(fill(SMALLEST_FORMAT)), cached_bytes(fill(SMALLEST_CACHE), share=1.0)


def _find_memory_violations(cells: Cells, lines: list[int]) -> Iterator[Violation]:
    gpus = count_gpus(cells)
    weights, cache = smallest_bytes(cells)
    usable = usable_bytes(cells.assign({"gpus": gpus}))
    for row in np.flatnonzero(weights + np.nan_to_num(cache) > usable).tolist():
        stated = cells["precision"][row]
        form = stated if stated is not None else "the smallest format"
        fact = f"the weights of {cells['model'][row] or 'the model'} in {form} take {weights[row] / GIB:.0f} GiB"
        columns: tuple[str, ...] = (*PARALLEL, "gpus", "model")
        remedy = _remedy(weights[row], cells, row)
        if weights[row] <= usable[row]:
            fact += f" and the cache of one request {cache[row] / GIB:.0f} GiB"
            columns = ("input_tokens", "output_tokens", *PARALLEL)
            remedy = "shorten it, or use more GPUs"
        fact += f", more than the {usable[row] / GIB:.0f} GiB that are {USABLE_MEMORY:.0%}".replace("%", " %")
        yield Violation(lines[row], columns, f"{fact} of {gpus[row]:g} {_plural(gpus[row])}", remedy)


def _find_model_violations(cells: Cells, lines: list[int]) -> Iterator[Violation]:
    """Yield limits of the model: its heads, its layers, its context, and formats that the GPU does not compute."""
    tensor = cells["tensor_parallel"]
    stages = cells["pipeline_parallel"]
    for row in np.flatnonzero(~can_share(cells, tensor)).tolist():
        heads = cells["heads"][row]
        kv_heads = cells["kv_heads"][row]
        fact = f"{tensor[row]:g} GPUs cannot share {heads:g} heads of attention with {kv_heads:g} of keys and values"
        fewer = np.arange(1.0, tensor[row])
        most = fewer[can_share(cells.take(np.full(len(fewer), row)), fewer)][-1]
        remedy = f"use {most:g}, or pipeline-parallel or attention-dp"
        yield Violation(lines[row], ("tensor_parallel", "gpus"), fact, remedy)
    for row in np.flatnonzero(stages > cells["layers"]).tolist():
        fact = f"{stages[row]:g} stages are more than the {cells['layers'][row]:g} layers of the model"
        yield Violation(lines[row], ("pipeline_parallel",), fact, "use fewer")
    tokens = cells["input_tokens"] + cells["output_tokens"]
    for row in np.flatnonzero(tokens > cells["context_tokens"]).tolist():
        fact = f"a prompt with its answer of {tokens[row]:g} tokens is longer than the context of "
        fact += f"{cells['model'][row] or 'the model'}, {cells['context_tokens'][row]:g} tokens"
        yield Violation(lines[row], ("input_tokens", "output_tokens"), fact, "shorten it")
    for row in np.flatnonzero(~_computes(cells)).tolist():
        stated = cells["precision"][row]
        known = [name for name in ("bf16", "fp8", "fp4") if not np.isnan(cells[PEAKS[name]][row])]
        fact = f"{cells['gpu'][row] or 'the GPU'} computes {', '.join(known)}, not {stated}"
        remedy = f"use {' or '.join(known)}, or int4: 4-bit weights that are computed in bf16"
        yield Violation(lines[row], ("precision", "model", "gpu"), fact, remedy)
    vendors = read_gpus()["vendor"].reindex(cells["gpu"]).to_numpy()
    foreign = (cells["backend"] == _NVIDIA_SOFTWARE) & ~pd.isna(vendors) & (vendors != "NVIDIA")
    for row in np.flatnonzero(foreign).tolist():
        yield Violation(
            lines[row],
            ("backend",),
            f"{_NVIDIA_SOFTWARE} runs on GPUs of NVIDIA",
            "use vllm or sglang",
        )


def _computes(cells: Cells) -> np.ndarray:
    """Return where the GPU computes the number format, (n,) bool, or the weights are published in it.

    Software converts published weights to bfloat16 as it reads them. What a GPU of no catalog computes is unknown.
    """
    stored = read_models()["stored"].to_dict()
    formats = cells["precision"]
    lacks = np.any(
        [(formats == name) & np.isnan(cells[column]) for name, column in PEAKS.items()],
        axis=0,
    )
    listed = np.isin(cells["gpu"].astype(str), list(read_gpus().index))
    published = np.array([stored.get(name) for name in cells["model_family"].tolist()], dtype=object)
    return np.asarray(~(lacks & listed) | (published == formats))


def _find_layout_violations(cells: Cells, lines: list[int]) -> Iterator[Violation]:
    known = {name: ~is_missing(cells[name]) for name in (*PARALLEL, *EXPERT_PARALLEL, "gpus", "experts")}
    stated = [np.where(known[name], cells[name], 1.0) for name in PARALLEL]
    product = np.prod(stated, axis=0)
    for row in np.flatnonzero(count_gpus(cells) > MAX_GPUS):
        yield Violation(
            lines[row],
            (*PARALLEL, "gpus"),
            f"they are more than {MAX_GPUS} GPUs",
            "correct it",
        )
    for row in np.flatnonzero(known["gpus"] & known["tensor_parallel"] & (product != cells["gpus"])):
        fact = f"tensor x pipeline x attention-data parallel are {product[row]:g} GPUs, not {cells['gpus'][row]:g}"
        yield Violation(lines[row], ("gpus", *PARALLEL), fact, "leave one of them out")
    # a part that is implied is a fraction where the other one is too large
    moe = np.prod(
        [np.where(known[name], np.maximum(cells[name], 1.0), 1.0) for name in EXPERT_PARALLEL],
        axis=0,
    )
    stages = np.where(known["pipeline_parallel"], np.maximum(cells["pipeline_parallel"], 1), 1.0)
    inside = count_gpus(cells) / stages
    mixture = known["experts"] & (cells["experts"] > 0)
    for row in np.flatnonzero(mixture & (moe > inside)):
        fact = f"experts on {moe[row]:g} GPUs are more than the {inside[row]:g} GPUs of a layer"
        yield Violation(
            lines[row],
            EXPERT_PARALLEL,
            fact,
            "tensor x attention-data parallel are those of a layer",
        )
    expert = np.where(known["moe_expert_parallel"], cells["moe_expert_parallel"], 1.0)
    for row in np.flatnonzero(known["experts"] & (cells["experts"] == 0) & (expert > 1)):
        yield Violation(
            lines[row],
            ("moe_expert_parallel",),
            "the model has no experts to share",
            "leave it out",
        )
    for row in np.flatnonzero(mixture & (expert > cells["experts"])):
        fact = f"{expert[row]:g} GPUs are more than the {cells['experts'][row]:g} experts of a layer"
        yield Violation(lines[row], ("moe_expert_parallel",), fact, "use fewer")


def _remedy(weights: float, cells: Cells, row: int) -> str:
    needed = int(2 ** np.ceil(np.log2(weights / (USABLE_MEMORY * GIB * cells["memory_gib"][row]))))
    smaller = ", or a smaller --precision" if cells["precision"][row] not in (None, SMALLEST_FORMAT) else ""
    return f"use {needed} or more GPUs{smaller}"


def _plural(gpus: float) -> str:
    return "GPU" if gpus == 1 else "GPUs"


class DeploymentLimits(Limits):
    """Limits of language models on GPUs."""

    kind_columns = ("gpu", "model_family")
    replaced: Mapping[str, tuple[str, ...]] = {
        **dict.fromkeys(PARALLEL, ("gpus",)),
        "gpus": ("tensor_parallel",),
        "model": ("model_family", *MODEL_FACTS, *MODEL_LIMITS),
    }

    def find_violations(self, cells: Cells) -> Iterator[Violation]:
        """Yield the limits that a deployment breaks; unknown cells break none."""
        lines = cells.index.tolist()
        for name, largest in _LARGEST.items():
            for row in np.flatnonzero(cells[name] > largest).tolist():
                fact = f"{cells[name][row]:g} are more than the {largest} that can be asked for"
                yield Violation(lines[row], (name,), fact, "correct it")
        with np.errstate(invalid="ignore"):
            yield from _find_layout_violations(cells, lines)
            yield from _find_model_violations(cells, lines)
            yield from _find_memory_violations(cells, lines)

    def list_vendors(self, cells: Mapping[str, Any]) -> list[Any]:
        """Return the vendors of GPUs: deployments on those of one tell little of those of another."""
        return list(read_gpus()["vendor"].reindex(list(cells["gpu"])))

    def find_bounds(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """Return the times of memory and arithmetic at their peaks, and infinity."""
        least = find_least(cells)
        return least, np.full(len(least), np.inf)

    def predict_logs(self, cells: Cells, predict: Callable[[Cells], np.ndarray]) -> np.ndarray:
        """Return the latencies at a grid of loads, combined so that no physics contradicts them."""
        return predict_latencies(cells, lambda points: predict(points)[:, 0])[:, None]

    def list_kinds(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield the GPU and the model."""
        family = cells["model_family"]
        kinds = name_kinds(
            {
                "the GPU": cells["gpu"],
                "the model": read_models()["names"].get(family, family),
            }
        )
        yield from (kind.partition("|")[0] for kind in kinds)
