"""Presentation of deployments: examples, notes, refusals of unknown names, and dated facts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.accelerator_catalog import GPU_FACTS, MODEL_FACTS, read_gpus, read_models
from perfcast.domains.llm.accelerators.served_memory import (
    GIB,
    PEAKS,
    USABLE_MEMORY,
    WEIGHT_BYTES,
    running_requests,
)
from perfcast.domains.llm.accelerators.typed_names import find_gpu, find_model, near_gpus, near_models
from perfcast.domains.llm.datasets.deployments import COLUMNS
from perfcast.domains.llm.deployment_fields import DERIVED_OUTPUTS
from perfcast.inference.machine_fields import Cell, TypedField
from perfcast.inference.rules.presentation import FactSource, Presentation
from perfcast.utils.errors import UserError

_NEW_GPU = ("bf16_tflops", "memory_gb_per_s", "memory_gib", "link_gb_per_s")
"""Facts that a GPU of no table requires; formats without a peak are computed in bfloat16."""
_NEW_MODEL = ("total_params_1e9", "active_params_1e9", "layers", "hidden", "kv_elements")
_LOAD = {"batch": "concurrency", "input": "input_tokens", "output": "output_tokens"}
"""Required fields with their columns: no load is usual."""
_BACKENDS = ("vllm", "sglang", "trtllm")
_UNITS = {column.name: column.unit for column in COLUMNS}


class DeploymentPresentation(Presentation):
    """Presentation of language models on GPUs."""

    form_fields = (
        "gpu",
        "model",
        "batch",
        "input",
        "output",
        "tensor-parallel",
        "attention-dp",
        "expert-parallel",
        "precision",
        "backend",
    )
    short_example = "'4 x H200; model=llama-3.1-70b; batch=32; input=2048; output=256'"
    example = "--gpu H200 --model llama-3.1-70b --batch 32 --input 2048 --output 256"
    page_texts: Mapping[str, str] = {
        "question": "How fast will this model be served?",
        "machines": "4 x H200; model=llama-3.1-70b; batch=32; input=2048; output=256; price=3.5\n"
        "2 x B200; model=llama-3.1-70b; batch=32; input=2048; output=256; price=6",
        "targets": "ttft <= 500 ms",
        "measured": "tpot = 14.5",
        "measured_machines": "4 x H200; model=llama-3.1-70b; batch=32; input=2048; output=256; "
        "quantity=tpot; latency=14.5",
    }
    lower_is_better = True
    derived = DERIVED_OUTPUTS
    price_columns = ("gpus",)
    price_head = "price of a system and hour"
    power_columns = ("power_w", "gpus")
    power_meaning = "the power limits of the GPUs alone"
    setup_columns = ("backend", "precision")
    origin_meanings: Mapping[str, str] = {
        "looked up": "a fact of the GPU or of the model, from the catalogs",
        "measured": "all measured results of the GPU have it",
        "assumed": "usual: measured deployments like it have it",
    }

    def list_notes(
        self,
        cells: Mapping[str, Cell],
        typed: Mapping[str, TypedField],
        label: str,
    ) -> tuple[str, ...]:
        """Return notes on a GPU and a model that no table lists.

        Raises: UserError when their facts are missing, a load is, or a number format or software is unknown.
        """
        notes = []
        for column, names, facts in (
            ("gpu", near_gpus, _NEW_GPU),
            ("model", near_models, _NEW_MODEL),
        ):
            find: Any = find_gpu if column == "gpu" else find_model
            name = str(cells.get(column, ""))
            if find(name) is not None:
                continue
            missing = [fact for fact in facts if fact not in cells]
            field = typed[column].name if column in typed else column
            if missing:
                file = ", give its config.json" if column == "model" else ""
                remedy = f"write one of {', '.join(names(name))}{file}, or add {', '.join(missing)}"
                fact = f"{label} has {name[:60]!r}" if name else f"{label} names none"
                raise UserError(
                    f"{field} must be a known {'GPU' if column == 'gpu' else 'model'}",
                    fact,
                    remedy,
                )
            if name:
                notes.append(
                    f"no data names the {'GPU' if column == 'gpu' else 'model'} {name!r}: its given facts count"
                )
        self._check_choice("precision", tuple(WEIGHT_BYTES), cells, typed, label)
        self._check_choice("backend", _BACKENDS, cells, typed, label)
        absent = [field for field, column in _LOAD.items() if column not in cells]
        if absent:
            raise UserError(
                f"a deployment must have {', '.join(_LOAD)}",
                f"{label} has no {', '.join(absent)}",
                "add it",
            )
        return tuple(notes)

    def _check_choice(
        self,
        column: str,
        known: Sequence[str],
        cells: Mapping[str, Cell],
        typed: Mapping[str, TypedField],
        label: str,
    ) -> None:
        if column in cells and cells[column] not in known:
            name = typed[column].name if column in typed else column
            raise UserError(
                f"{name} must be one of {', '.join(known)}",
                f"{label} has {str(cells[column])[:60]!r}",
            )

    def list_assumed_notes(self, cells: Mapping[str, Any], assumed: Container[str]) -> Iterator[str]:
        """Yield the number format that nobody typed, and those whose weights do not fit in memory."""
        if "precision" not in assumed or cells["precision"] is None:
            return
        note = f"the number format {cells['precision']} is assumed"
        usable = USABLE_MEMORY * cells["gpus"] * cells["memory_gib"] * GIB
        stored = {name: size * cells["total_params_1e9"] * 1e9 for name, size in WEIGHT_BYTES.items()}
        if beyond := [name for name, size in stored.items() if size > usable]:
            note += f": weights in {' and '.join(beyond)} do not fit into {usable / GIB:.0f} GiB of memory"
        yield f"{note}; give precision"

    def list_completed_notes(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield notes on a format that the GPU does not compute, and on caches that do not fit together."""
        if np.isnan(cells[PEAKS.get(str(cells["precision"]), "bf16_tflops")]):
            stored = f"{cells['gpu']} has no {cells['precision']} arithmetic"
            yield f"{stored}: the weights are stored in it, and computed in bfloat16"
        as_columns = {name: np.array([cell]) for name, cell in cells.items()}
        running = np.floor(running_requests(as_columns)[0])
        if running < cells["concurrency"]:
            fact = f"the caches of {running:.0f} of {cells['concurrency']:g} requests fit in memory at once"
            yield f"{fact}: the others wait until earlier ones end, and ttft includes their wait"

    def list_fact_sources(self, cells: Mapping[str, Any], user_facts: Sequence[Any] = ()) -> tuple[FactSource, ...]:
        """Return the rows of the catalogs on the GPU and the model."""
        catalogs = (
            (read_gpus(), cells.get("gpu"), cells.get("gpu"), GPU_FACTS),
            (read_models(), cells.get("model_family"), cells.get("model"), MODEL_FACTS),
        )
        sources = []
        for table, key, subject, facts in catalogs:
            if key in table.index:
                row = table.loc[key]
                shown = [f"{name} {row[name]:g} {_UNITS[name]}".strip() for name in facts if pd.notna(row[name])]
                source = FactSource(str(subject), str(row["known_from"]), str(row["source"]), tuple(shown))
                sources.append(source)
        return tuple(sorted(sources, key=lambda source: source.known_from, reverse=True))
