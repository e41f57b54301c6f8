"""Description rules of served models with their energy: facts of the GPU, the layout, and joules per token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.accelerators.accelerator_rules import read_known
from perfcast.domains.accelerators.catalog import FACTS, find_accelerator, find_typed_accelerator, read_accelerators
from perfcast.domains.accelerators.datasets.ml_energy import BYTES
from perfcast.inference.cells import Cells, fill_missing
from perfcast.inference.donors import Block
from perfcast.inference.machine_fields import Cell, TypedField, alias_field, counted_field
from perfcast.inference.rules.description_rules import DescriptionRules
from perfcast.inference.rules.limits import Limits
from perfcast.inference.rules.names import Names
from perfcast.inference.rules.presentation import DerivedOutput, Presentation
from perfcast.inference.rules.typical_values import TypicalValues
from perfcast.utils.errors import UserError


def _cost(many: float, named: str, joules: DerivedOutput) -> tuple[DerivedOutput, ...]:
    """Return the kWh of many items, and what they cost."""
    scale = many / 3.6e6  # joules of a kWh
    return (
        DerivedOutput(
            f"kwh_per_{named}",
            "kWh",
            joules.formula,
            joules.tasks,
            (),
            lambda scores, cells: joules.compute(scores, cells) * scale,
        ),
        DerivedOutput(
            f"electricity_per_{named}",
            "",
            "kWh x kwh_price",
            joules.tasks,
            ("kwh_price",),
            lambda scores, cells: joules.compute(scores, cells) * scale * cells["kwh_price"],
        ),
    )


_TOKEN = DerivedOutput(
    "joules_per_token",
    "J/token",
    "watts x ms per token / 1000, of the GPUs alone",
    ("watts", "token_ms"),
    (),
    lambda scores, cells: scores["watts"] * scores["token_ms"] / 1000,
)
_ITEM = DerivedOutput(
    "joules_per_item",
    "J/item",
    "item_joules, of the GPUs alone",
    ("item_joules",),
    (),
    lambda scores, cells: scores["item_joules"],
)


class EnergyNames(Names):
    """Names of served models with their energy."""

    fields = (
        counted_field(alias_field("gpu", "gpu", "name of the GPU", "B200"), "gpus", find_typed_accelerator),
        alias_field("batch", "concurrency", "requests in progress at once, or items of a batch", "64"),
        alias_field("electricity-price", "kwh_price", "price of a kWh", "0.25"),
    )
    entity_name = "model"
    named_field = "model"
    naming_columns = ("gpu", "gpus", "concurrency")

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return the model, its GPUs and its batch."""
        name = super().name_machine(entity, cells)
        return f"{name}, {cells['gpus']:g} x {cells['gpu']}, batch {cells['concurrency']:g}"


class EnergyTypicalValues(TypicalValues):
    """Typical values of served models with their energy."""

    blocks = (Block("workload", ("workload",), (("model",), ()), recent=False),)
    shared_by: str = "tensor_parallel"
    """Column of the GPUs that share a model."""
    usual: Mapping[str, Any] = {
        "expert_parallel": 1.0,
        "data_parallel": 1.0,
        "precision": "bfloat16",
        "workload": "lm-arena-chat",
    }

    def fill_implied(self, cells: Cells) -> Cells:
        """Fill the number of GPUs, one where none is stated, their facts, and the bytes of a weight."""
        table = read_accelerators()
        rows = table.index.get_indexer(pd.Index(cells["gpu"].astype(str)))  # -1 for an unknown one
        facts = {name: np.append(table[name].to_numpy(dtype=float), np.nan)[rows] for name in FACTS if name in cells}
        stored = np.array([BYTES.get(str(name), np.nan) for name in cells["precision"].tolist()])
        return fill_missing(
            cells,
            {
                **facts,
                "weight_bytes": stored,
                "gpus": np.fmax(1.0, cells[self.shared_by]),
            },
        )

    def fill_usual(self, cells: Cells, last: pd.Timestamp) -> Cells:
        """Fill a model that all GPUs share, and the usual values of the load."""
        count = len(cells.index)
        usual = {
            name: np.full(count, value, dtype=object if isinstance(value, str) else float)
            for name, value in self.usual.items()
        }
        return self.fill_implied(fill_missing(cells, {**usual, self.shared_by: cells["gpus"]}))


class EnergyLimits(Limits):
    """Limits of served models with their energy."""

    kind_columns = ("model", "gpu")

    def list_kinds(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield the GPU where no catalog has it: no result of it was measured."""
        name = cells.get("gpu")
        if isinstance(name, str) and find_accelerator(name) is None:
            yield f"the GPU {name}"


class EnergyPresentation(Presentation):
    """Presentation of served models with their energy."""

    form_fields: tuple[str, ...] = (
        "model",
        "gpu",
        "batch",
        "workload",
        "precision",
        "electricity-price",
    )
    short_example = "'Qwen/Qwen3-14B; gpu=B200; batch=64'"
    example = "--set model=Qwen/Qwen3-14B --gpu B200 --batch 64"
    page_texts: Mapping[str, str] = {
        "question": "What power and energy will this model take?",
        "targets": "watts <= 700",
        "measured": "watts = 650",
        "machines": "Qwen/Qwen3-14B; gpu=B200; batch=64",
        "marks": "Of the data: the ML.ENERGY benchmark.",
    }
    lower_is_better = True
    task_units: Mapping[str, str] = {
        **dict.fromkeys(
            (
                "token_ms",
                "median_itl",
                "p90_itl",
                "p95_itl",
                "p99_itl",
            ),
            "ms",
        ),
        "watts": "W",
        "item_joules": "J",
    }
    power_meaning = "the GPUs alone"
    derived = (
        _TOKEN,
        *_cost(1e6, "million_tokens", _TOKEN),
        DerivedOutput(
            "tokens_per_second",
            "tokens/s",
            "1000 / ms per token",
            ("token_ms",),
            (),
            lambda scores, cells: 1000 / scores["token_ms"],
        ),
    )
    identifying_columns = ("gpus", "concurrency")
    assumed_identity = ("workload", "precision")

    def list_notes(
        self,
        cells: Mapping[str, Cell],
        typed: Mapping[str, TypedField],
        label: str,
    ) -> tuple[str, ...]:
        """Return what the power includes. Raises: UserError for an unknown GPU without facts, or without a batch."""
        read_known("gpu", cells, typed, label)
        if "concurrency" not in cells:
            raise UserError("a served model must have a batch", f"{label} has none", "add batch, such as 64")
        return ("power and energy are those of the GPUs alone, without host, network and cooling",)


class DiffusionTypicalValues(EnergyTypicalValues):
    """Typical values of diffusion models with their energy per image or video."""

    blocks = (
        Block(
            "load",
            ("workload", "height", "width", "frames", "steps"),
            (("model",), ()),
            recent=False,
        ),
    )
    shared_by = "ulysses"
    usual: Mapping[str, Any] = {"ring": 1.0, "precision": "bfloat16"}


class DiffusionPresentation(EnergyPresentation):
    """Presentation of diffusion models with their energy per image or video."""

    short_example = "'black-forest-labs/FLUX.1-dev; gpu=B200; batch=4'"
    example = "--set model=black-forest-labs/FLUX.1-dev --gpu B200 --batch 4"
    form_fields = (
        "model",
        "gpu",
        "batch",
        "height",
        "width",
        "frames",
        "steps",
        "electricity-price",
    )
    derived = (
        *_cost(1e3, "thousand_items", _ITEM),
        DerivedOutput(
            "seconds_per_batch",
            "s",
            "item_joules x batch / watts",
            ("item_joules", "watts"),
            ("concurrency",),
            lambda scores, cells: scores["item_joules"] * cells["concurrency"] / scores["watts"],
        ),
    )


ML_ENERGY = DescriptionRules(EnergyNames(), EnergyTypicalValues(), EnergyLimits(), EnergyPresentation())
ML_ENERGY_DIFFUSION = DescriptionRules(EnergyNames(), DiffusionTypicalValues(), EnergyLimits(), DiffusionPresentation())
