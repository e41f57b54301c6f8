"""Kernels of a whole model, from the graph of its operations.

A graph has the kernels of every operation in three phases: forward, backward, and accumulation of gradients. Where the
layers of a model are equal, its graph has one of them, between two operations of known names. The kernels of this layer
run as often as the model has layers.

Source: Lee, Phanishayee and Mahajan, NeuSight, 2025, ASPLOS: its published graphs.
"""

from __future__ import annotations

import json
from math import prod
from typing import Any

import pandas as pd

from perfcast.data.accelerators.kernel_costs import SHAPE
from perfcast.data.bounded_files import FETCH_AGAIN
from perfcast.data.sources.neusight import ARCHIVE, PHASES
from perfcast.utils.errors import UserError

KINDS = {
    "bmm": "products of batches of matrices",
    "linear": "products with weights",
    "element_wise": "element-wise operations",
    "layer_norm": "layer normalizations",
    "softmax": "softmax",
    "copy": "data that are moved without operations",
}
"""Kind of kernel -> meaning."""
LAYERS = {
    "bert_encoder_layer_0_attention_self_query": "bert_encoder_layer_0_output_layer_norm",
    "transformer_h_0_ln_1": "add_15",
    "model_decoder_layers_0_self_attn_layer_norm": "view_11",
}
"""First operation of a layer -> its last one: BERT, GPT, OPT."""

_ELEMENT_WISE = "VEC"
"""Start of the names of kernels that are no products."""
_KINDS_OF_ROWS = {"ln": "layer_norm", "softmax": "softmax"}
_MAX_SIZE = 2**40
_COLUMNS = ("kind", "op", *SHAPE)


def list_kernels(graph: pd.DataFrame, layers: int, run: str) -> pd.DataFrame:
    """Return the distinct kernels of a model run with their number.

    Args:
        graph: Columns `Name` and those of `PHASES`, as texts.
        layers: How often the layer of the graph runs; 0 where the graph has all layers.
        run: Name of the run, for messages.

    Shapes:
        One row per distinct kernel: `kind`, `op`, `batch`, `m`, `n`, `k`, `width` and `count`. A size that a kind does
        not have is missing.

    Raises:
        UserError: A kernel is unknown, or the layer is absent from the graph.
    """
    times = _repetitions(list(graph["Name"]), layers, run)
    counts: dict[tuple[Any, ...], int] = {}
    for phase in PHASES:
        for text, repeated in zip(graph[phase], times, strict=True):
            for kernel in _read_kernels(text, run):
                counts[kernel] = counts.get(kernel, 0) + repeated
    frame = pd.DataFrame(list(counts), columns=list(_COLUMNS))
    frame = frame.astype(dict.fromkeys(SHAPE, "float64")).assign(count=[float(count) for count in counts.values()])
    return frame.sort_values(list(_COLUMNS), kind="stable", ignore_index=True)


def _repetitions(names: list[str], layers: int, run: str) -> list[int]:
    """Return how often every operation of a graph runs."""
    if layers == 0:
        return [1] * len(names)
    for first, last in LAYERS.items():
        if names.count(first) == 1 and names.count(last) == 1 and names.index(first) <= names.index(last):
            start, end = names.index(first), names.index(last)
            return [layers if start <= place <= end else 1 for place in range(len(names))]
    requirement = f"{run}.csv of {ARCHIVE} must have the first and the last operation of a layer once"
    raise UserError(requirement, f"it has neither of {', '.join(LAYERS)} with its end", FETCH_AGAIN)


def _read_kernels(text: str, run: str) -> list[tuple[Any, ...]]:
    """Return the kernels of one operation in one phase, as values of `_COLUMNS`. Raises: UserError."""
    if text == "[]":
        return []
    # the text is a Python literal of lists, tuples, names and whole numbers
    listed = text.replace("'", '"').replace("(", "[").replace(")", "]").replace(",]", "]")
    try:
        kernels = (_describe(name, sizes) for name, sizes in json.loads(listed))
        return [kernel for kernel in kernels if kernel is not None]
    except (ValueError, TypeError, AttributeError, RecursionError):
        fact = f"there is {text[:60]!r}"
        raise UserError(f"{run}.csv of {ARCHIVE} must have kernels with their sizes", fact, FETCH_AGAIN) from None


def _describe(name: str, sizes: list[Any]) -> tuple[Any, ...] | None:
    """Return a kernel as values of `_COLUMNS`, None where nothing runs. Raises: ValueError, TypeError."""
    if name == "MEM":
        # one element of a list of sizes is read by the processor; no kernel runs
        moved = [prod(map(_size, shape)) for shape in sizes]
        return None if max(moved) <= 1 else ("copy", "copy", 1.0, None, None, None, sum(moved) / 2)
    numbers = [_size(size) for size in sizes]
    if 0 in numbers:  # an expert without tokens
        return None
    if name == "BMM":
        batch, m, k, n = numbers
        return ("bmm", "bmm", batch, m, n, k, None)
    if name == "Linear":
        m, k, n = numbers
        return ("linear", "linear", 1.0, m, n, k, None)
    if not name.startswith(_ELEMENT_WISE):
        raise ValueError(name)
    batch, width = numbers
    op = name.removeprefix(_ELEMENT_WISE)
    return (_KINDS_OF_ROWS.get(op, "element_wise"), op, batch, None, None, None, width)


def _size(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_SIZE:
        raise ValueError(value)
    return float(value)
