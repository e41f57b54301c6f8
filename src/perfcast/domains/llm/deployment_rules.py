"""Imputation rules of deployed language models: facts of GPU and model, the layout, and usual software."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.llm.accelerators.accelerator_catalog import (
    GPU_FACTS,
    MODEL_FACTS,
    MODEL_LIMITS,
    read_gpus,
    read_models,
)
from perfcast.domains.llm.accelerators.model_config import read_model_config
from perfcast.domains.llm.accelerators.served_memory import (
    GIB,
    PEAKS,
    USABLE_MEMORY,
    WEIGHT_BYTES,
    running_requests,
)
from perfcast.domains.llm.accelerators.typed_names import (
    find_gpu,
    find_model,
    near_gpus,
    near_models,
)
from perfcast.domains.llm.datasets.deployments import COLUMNS
from perfcast.domains.llm.deployment_fields import DEPLOYMENT_FIELDS, DERIVED_OUTPUTS
from perfcast.domains.llm.deployment_limits import (
    PARALLEL,
    can_share,
    find_deployment_violations,
    smallest_bytes,
)
from perfcast.domains.llm.deployment_loads import find_least, predict_latencies
from perfcast.inference.cells import Cells, EntityFacts, fill_missing, is_missing
from perfcast.inference.donors import Block, JointRules
from perfcast.inference.machine_fields import Cell, TypedField
from perfcast.inference.rules import DescriptionRules, FactSource, Violation, name_kinds
from perfcast.utils.errors import UserError

_NEW_GPU = ("bf16_tflops", "memory_gb_per_s", "memory_gib", "link_gb_per_s")
"""Facts that a GPU of no table requires; formats without a peak are computed in bfloat16."""
_NEW_MODEL = ("total_params_1e9", "active_params_1e9", "layers", "hidden", "kv_elements")
_LOAD = {"batch": "concurrency", "input": "input_tokens", "output": "output_tokens"}
"""Required fields with their columns: no load is usual."""
_BACKENDS = ("vllm", "sglang", "trtllm")
_MAX_NODE = 64
"""GPUs of the largest layout that is assumed."""
_SUFFIX = ".json"
_UNITS = {column.name: column.unit for column in COLUMNS}


class DeploymentRules(DescriptionRules):
    """Rules of language models on GPUs."""

    fields = DEPLOYMENT_FIELDS
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
    entity_name = "GPU"
    named_field = "gpu"
    short_example = "'4 x H200; model=llama-3.1-70b; batch=32; input=2048; output=256'"
    example = "--gpu H200 --model llama-3.1-70b --batch 32 --input 2048 --output 256"
    page_texts: ClassVar[Mapping[str, str]] = {
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
    origin_meanings: ClassVar[Mapping[str, str]] = {
        "looked up": "a fact of the GPU or of the model, from the catalogs",
        "measured": "all measured results of the GPU have it",
        "assumed": "usual: measured deployments like it have it",
    }
    kind_columns = ("gpu", "model_family")
    held_equal = ("precision", "backend")
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
    replaced: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys(PARALLEL, ("gpus",)),
        "gpus": ("tensor_parallel",),
        "model": ("model_family", *MODEL_FACTS, *MODEL_LIMITS),
    }
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

    def find_violations(self, cells: Cells) -> Iterator[Violation]:
        """Yield the limits of deployments that a row breaks."""
        return find_deployment_violations(cells)

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


LLM_SERVING = DeploymentRules()
