"""Limits of deployments of language models: layouts, the memory of the GPUs, and loads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfcast.data.accelerators.served_memory import WEIGHT_BYTES
from perfcast.inference.cells import Cells, is_missing
from perfcast.inference.imputation.rules import Violation

PARALLEL = ("tensor_parallel", "pipeline_parallel", "attention_data_parallel")
"""Columns whose product is the number of GPUs."""
EXPERT_PARALLEL = ("moe_tensor_parallel", "moe_expert_parallel")
MAX_GPUS = 1024
_LARGEST = {"input_tokens": 10_000_000, "output_tokens": 10_000_000, "concurrency": 1_000_000}
_GIB = 2.0**30
_BILLION = 1e9
SMALLEST_FORMAT = min(WEIGHT_BYTES.values())


def count_gpus(cells: Cells) -> np.ndarray:
    """Return the GPUs of deployments, (n,): those given, else the product of the layout, whose unstated parts are 1."""
    tensor, *others = (cells[name] for name in PARALLEL)
    product = tensor * np.prod([np.where(np.isnan(values), 1.0, values) for values in others], axis=0)
    return np.asarray(np.where(np.isnan(cells["gpus"]), product, cells["gpus"]))


def weight_bytes(cells: Cells) -> np.ndarray:
    """Return the bytes of a weight, (n,), those of the smallest format where none is known."""
    return np.array([WEIGHT_BYTES.get(name, SMALLEST_FORMAT) for name in cells["precision"].tolist()])


def weights_gib(cells: Cells) -> np.ndarray:
    """Return the memory of the weights, (n,) GiB."""
    return np.asarray(cells["total_params_1e9"] * _BILLION * weight_bytes(cells) / _GIB)


def cache_gib(cells: Cells) -> np.ndarray:
    """Return the memory of the caches of one request at its end, (n,) GiB; of one byte an element."""
    length = cells["input_tokens"] + cells["output_tokens"]
    windowed = cells["window_layers"] * np.minimum(length, cells["window"])
    return np.asarray(cells["kv_elements"] * (cells["full_layers"] * length + windowed) / _GIB)


def find_deployment_violations(cells: Cells) -> Iterator[Violation]:
    """Yield the limits that a deployment breaks; unknown cells break none."""
    lines = cells.index.tolist()
    for name, largest in _LARGEST.items():
        for row in np.flatnonzero(cells[name] > largest).tolist():
            fact = f"{cells[name][row]:g} are more than the {largest} that can be asked for"
            yield Violation(lines[row], (name,), fact, "correct it")
    yield from _find_layout_violations(cells, lines)
    gpus, weights, cache = count_gpus(cells), weights_gib(cells), cache_gib(cells)
    memory = gpus * cells["memory_gib"]
    with np.errstate(invalid="ignore"):
        for row in np.flatnonzero(weights > memory).tolist():
            stated = cells["precision"][row]
            form = stated if stated is not None else "the smallest format"
            fact = f"the weights of {cells['model'][row] or 'the model'} in {form} take {weights[row]:.0f} GiB, "
            fact += f"more than the {memory[row]:.0f} GiB of {gpus[row]:g} {_plural(gpus[row])}"
            yield Violation(lines[row], (*PARALLEL, "gpus", "model"), fact, _remedy(weights[row], cells, row))
        for row in np.flatnonzero((weights <= memory) & (weights + cache > memory)).tolist():
            fact = f"weights of {weights[row]:.0f} GiB and the cache of one request of {cache[row]:.0f} GiB are more "
            fact += f"than the {memory[row]:.0f} GiB of {gpus[row]:g} {_plural(gpus[row])}"
            remedy = "shorten it, or use more GPUs"
            yield Violation(lines[row], ("input_tokens", "output_tokens", *PARALLEL), fact, remedy)


def _find_layout_violations(cells: Cells, lines: list[int]) -> Iterator[Violation]:
    known = {name: ~is_missing(cells[name]) for name in (*PARALLEL, *EXPERT_PARALLEL, "gpus", "experts")}
    product = np.prod([np.where(known[name], cells[name], 1.0) for name in PARALLEL], axis=0)
    for row in np.flatnonzero(count_gpus(cells) > MAX_GPUS):
        yield Violation(lines[row], (*PARALLEL, "gpus"), f"they are more than {MAX_GPUS} GPUs", "correct it")
    for row in np.flatnonzero(known["gpus"] & known["tensor_parallel"] & (product != cells["gpus"])):
        fact = f"tensor x pipeline x attention-data parallel are {product[row]:g} GPUs, not {cells['gpus'][row]:g}"
        yield Violation(lines[row], ("gpus", *PARALLEL), fact, "leave one of them out")
    # a part that is implied is a fraction where the other one is too large
    moe = np.prod([np.where(known[name], np.maximum(cells[name], 1.0), 1.0) for name in EXPERT_PARALLEL], axis=0)
    inside = np.where(known["pipeline_parallel"], count_gpus(cells) / np.maximum(cells["pipeline_parallel"], 1), np.nan)
    inside = np.where(known["pipeline_parallel"], inside, count_gpus(cells))
    mixture = known["experts"] & (cells["experts"] > 0)
    for row in np.flatnonzero(mixture & (moe > inside)):
        fact = f"experts on {moe[row]:g} GPUs are more than the {inside[row]:g} GPUs of a layer"
        yield Violation(lines[row], EXPERT_PARALLEL, fact, "tensor x attention-data parallel are those of a layer")
    expert = np.where(known["moe_expert_parallel"], cells["moe_expert_parallel"], 1.0)
    for row in np.flatnonzero(known["experts"] & (cells["experts"] == 0) & (expert > 1)):
        yield Violation(lines[row], ("moe_expert_parallel",), "the model has no experts to share", "leave it out")
    for row in np.flatnonzero(mixture & (expert > cells["experts"])):
        fact = f"{expert[row]:g} GPUs are more than the {cells['experts'][row]:g} experts of a layer"
        yield Violation(lines[row], ("moe_expert_parallel",), fact, "use fewer")


def _remedy(weights: float, cells: Cells, row: int) -> str:
    needed = int(2 ** np.ceil(np.log2(weights / cells["memory_gib"][row])))
    return f"use {needed} or more GPUs" + (
        ", or a smaller --precision" if weight_bytes(cells)[row] > SMALLEST_FORMAT else ""
    )


def _plural(gpus: float) -> str:
    return "GPU" if gpus == 1 else "GPUs"
