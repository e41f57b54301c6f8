"""Derived characteristics of a served language model: its operators at the speed of light, by part of a request's time.

The operators follow from the shapes of the model's layers; those of a model that the catalog lacks are estimated.

Source: `data.accelerators.step_operators`.
"""

from __future__ import annotations

from perfcast.domains import read_columns
from perfcast.domains.llm.accelerators.served_memory import running_requests
from perfcast.domains.llm.accelerators.step_operators import (
    PEAKS,
    add_parts,
    light_of,
    list_operators,
)
from perfcast.features.feature_math import append, require
from perfcast.schema.table import Table

REQUIRES = (
    "model_family",
    "gpu",
    "precision",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "gpus",
    "memory_gib",
    "tensor_parallel",
    "attention_data_parallel",
    "moe_tensor_parallel",
    "moe_expert_parallel",
    "total_params_1e9",
    "layers",
    "hidden",
    "kv_elements",
    "full_layers",
    "window_layers",
    "window",
    "experts",
    "experts_per_token",
    *PEAKS,
)
_COLUMNS = read_columns(__package__, "columns.csv", "llm_operators")


def derive(table: Table) -> Table:
    """Append the times of the parts to a table of deployments.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    frame = require(table, REQUIRES)
    known = frame.assign(running=running_requests(frame))
    operators = list_operators(known)
    parts = add_parts(operators, light_of(operators), known)
    return append(table, _COLUMNS, {f"part_{name}": values for name, values in parts.items()})
