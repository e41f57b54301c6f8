"""Names in descriptions of deployments: GPUs, fields, tasks, and the files of models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.domains.llm.accelerators.model_config import read_model_config
from perfcast.domains.llm.deployment_fields import DEPLOYMENT_FIELDS
from perfcast.inference.rules.names import Names

_SUFFIX = ".json"


class DeploymentNames(Names):
    """Names of language models on GPUs."""

    fields = DEPLOYMENT_FIELDS
    entity_name = "GPU"
    named_field = "gpu"
    naming_columns = (
        "model",
        "gpus",
        "precision",
        "backend",
        "concurrency",
        "input_tokens",
        "output_tokens",
        "attention_data_parallel",
    )
    task_aliases: Mapping[str, str] = {
        "time to first token": "ttft",
        "time per output token": "tpot",
    }
    named_columns = ("model_family", "deployment", "generation")

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return GPUs, model, number format, software and load."""
        known = {name: cell for name, cell in cells.items() if not pd.isna(cell)}
        gpus = f"{known['gpus']:g} x " if "gpus" in known else ""
        parts = [f"{gpus}{known.get(entity, 'a GPU')}"]
        parts += [known[name] for name in ("model", "precision", "backend") if name in known]
        if known.get("attention_data_parallel", 1.0) > 1:
            parts.append(f"dp {known['attention_data_parallel']:g}")
        if "concurrency" in known:
            tokens = "+".join(f"{known[n]:g}" for n in ("input_tokens", "output_tokens") if n in known)
            parts.append(f"batch {known['concurrency']:g}" + (f" of {tokens} tokens" if tokens else ""))
        return ", ".join(map(str, parts))

    def read_key(self, name: str) -> str:
        """Return the key of a GPU: without the name of its vendor."""
        return super().read_key(name).removeprefix("nvidia ").removeprefix("amd ")

    def read_files(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the fields with the facts of a model whose name is that of a config.json file."""
        name = next(
            (name for name in values if name.strip().lower() in ("model", "model.model")),
            None,
        )
        text = values.get(name) if name is not None else None
        is_path = isinstance(text, (str, Path)) and str(text).strip().lower().endswith(_SUFFIX)
        if name is None or not is_path:
            return dict(values)
        shape = read_model_config(Path(str(text).strip()))
        given = {other.strip().lower() for other, value in values.items() if value not in (None, "")}
        read: dict[str, object] = {
            **shape.facts,
            **({"precision": shape.precision} if shape.precision else {}),
        }
        others = {other: value for other, value in read.items() if other not in given}
        return {**values, name: shape.name, **others}
