"""Typical values of deployments: facts of GPU and model, the layout, and usual software."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.accelerator_catalog import (
    GPU_FACTS,
    MODEL_FACTS,
    MODEL_LIMITS,
    read_gpus,
    read_models,
)
from perfcast.domains.llm.accelerators.served_memory import GIB, USABLE_MEMORY
from perfcast.domains.llm.accelerators.typed_names import find_model
from perfcast.domains.llm.deployment_limits import can_share, smallest_bytes
from perfcast.inference.cells import Cells, EntityFacts, fill_missing, is_missing
from perfcast.inference.donors import Block, JointRules
from perfcast.inference.rules.typical_values import TypicalValues

_MAX_NODE = 64
"""GPUs of the largest layout that is assumed."""


class DeploymentTypicalValues(TypicalValues):
    """Typical values of language models on GPUs."""

    held_equal = ("precision", "backend")
    blocks = (
        Block(
            "number format",
            ("precision",),
            (
                ("model_family", "gpu"),
                ("model_family", "generation"),
                ("model_family",),
                ("generation",),
                (),
            ),
            recent=False,
        ),
        Block(
            "serving software",
            ("backend",),
            (
                ("model_family", "gpu", "precision"),
                ("model_family", "gpu"),
                ("model_family",),
                (),
            ),
            recent=False,
        ),
    )
    joint = JointRules(
        taken=("precision", "backend"),
        per_unit={},
        groups=(
            ("model_family", "gpu"),
            ("model_family", "generation"),
            ("model_family",),
            ("generation",),
        ),
        penalties={
            "gpu": 1.0,
            "precision": 5.0,
            "backend": 5.0,
            "tensor_parallel": 0.5,
            "attention_data_parallel": 0.5,
            "concurrency": 0.25,
            "input_tokens": 0.25,
            "output_tokens": 0.25,
            "total_params_1e9": 1.0,
        },
        years=1.0,
        replaced=True,
    )

    def read_entity_facts(
        self,
        raw: Mapping[str, Path],
        measured: Iterable[str],
        as_of: pd.Timestamp | None = None,
    ) -> pd.DataFrame:
        """Return the facts of the GPUs of the catalog that were public before a day."""
        gpus = read_gpus()
        known = gpus if as_of is None else gpus[pd.to_datetime(gpus["known_from"]) < as_of]
        return known[["generation", *GPU_FACTS]].astype(dict.fromkeys(GPU_FACTS, "float64"))

    def fill_entity_facts(self, cells: Cells, facts: EntityFacts) -> Cells:
        """Fill the facts of the GPU and those of the model."""
        filled = fill_missing(cells, facts.look_up(cells["gpu"].tolist(), cells))
        models = filled["model"].tolist()
        families = {name: known.family for name in set(models) if name is not None and (known := find_model(name))}
        named = np.array([families.get(name) for name in models], dtype=object)
        filled = fill_missing(filled, {"model_family": named})
        shapes = read_models()
        rows = [shapes.index.get_loc(name) if name in shapes.index else -1 for name in filled["model_family"].tolist()]
        places = np.array(rows, dtype=int)
        names = (*MODEL_FACTS, *MODEL_LIMITS)
        return fill_missing(
            filled,
            {name: np.append(shapes[name].to_numpy(dtype=float), np.nan)[places] for name in names},
        )

    def fill_implied(self, cells: Cells) -> Cells:
        """Fill the layout: what it does not state is 1, experts are shared like the layers, GPUs are the product.

        A GPU that computes one number format has that.
        """
        stated = ~np.isnan(cells["tensor_parallel"]) | ~np.isnan(cells["gpus"])
        single = np.where(stated, 1.0, np.nan)
        filled = fill_missing(cells, {"pipeline_parallel": single, "attention_data_parallel": single})
        others = filled["pipeline_parallel"] * filled["attention_data_parallel"]
        shared = filled["gpus"] / others
        filled = fill_missing(filled, {"tensor_parallel": np.where(shared % 1 == 0, shared, np.nan)})
        filled = fill_missing(filled, {"gpus": filled["tensor_parallel"] * others})
        layer = filled["tensor_parallel"] * filled["attention_data_parallel"]
        is_mixture = filled["experts"] > 0
        copies = np.where(is_mixture & (filled["attention_data_parallel"] > 1), layer, 1.0)
        by_expert = np.where(
            np.isnan(filled["moe_tensor_parallel"]),
            copies,
            layer / filled["moe_tensor_parallel"],
        )
        filled = fill_missing(filled, {"moe_expert_parallel": np.where(np.isnan(layer), np.nan, by_expert)})
        by_tensor = np.where(
            is_mixture,
            layer / filled["moe_expert_parallel"],
            np.where(np.isnan(layer), np.nan, 1.0),
        )
        gpus = read_gpus()
        has_one = np.isin(filled["gpu"].astype(str), gpus.index[gpus["fp8_tflops"].isna()])
        filled = fill_missing(filled, {"precision": np.where(has_one, "bf16", np.array(None))})
        full = {"full_layers": filled["layers"] - np.nan_to_num(filled["window_layers"])}
        zero = np.where(np.isnan(filled["layers"]), np.nan, 0.0)
        none = dict.fromkeys(("window_layers", "window", "experts", "experts_per_token"), zero)
        return fill_missing(filled, {"moe_tensor_parallel": by_tensor, **full, **none})

    def fill_usual(self, cells: Cells, last: pd.Timestamp) -> Cells:
        """Fill the fewest GPUs, a power of two, that hold the weights and the caches of all requests.

        Eight at most share a layer for the caches of requests. GPUs that cannot share the heads share the layers.
        """
        weights, cache = smallest_bytes(cells)
        usable = USABLE_MEMORY * GIB * cells["memory_gib"]
        with np.errstate(invalid="ignore", divide="ignore"):
            all_fit, one_fits = (
                2 ** np.ceil(np.log2(np.maximum((weights + requests * cache) / usable, 1.0)))
                for requests in (cells["concurrency"], 1.0)
            )
        gpus = np.maximum(np.minimum(all_fit, 8.0), np.minimum(one_fits, _MAX_NODE))
        tensor = np.where(np.isnan(gpus), np.nan, 1.0)
        for shared in 2.0 ** np.arange(1, np.log2(_MAX_NODE) + 1):
            tensor = np.where(
                (shared <= gpus) & can_share(cells, np.full(len(gpus), shared)),
                shared,
                tensor,
            )
        stages = np.where(gpus > tensor, gpus / tensor, np.nan)
        is_free = is_missing(cells["tensor_parallel"]) & is_missing(cells["gpus"])
        return fill_missing(
            cells,
            {
                "tensor_parallel": tensor,
                "pipeline_parallel": np.where(is_free, stages, np.nan),
            },
        )
