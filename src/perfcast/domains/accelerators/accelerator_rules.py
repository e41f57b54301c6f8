"""Rules of described accelerators and served models: names, facts, usual systems, and what their answers must say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.accelerators.catalog import FACTS, find_accelerator, find_typed_accelerator, read_accelerators
from perfcast.domains.accelerators.datasets.ml_energy import BYTES
from perfcast.inference.cells import Cells, EntityFacts, fill_missing
from perfcast.inference.donors import Block
from perfcast.inference.machine_fields import Cell, TypedField, alias_field, counted_field
from perfcast.inference.rules import DerivedOutput, DescriptionRules
from perfcast.utils.errors import UserError

ESTIMATE = "estimate by perfcast, not verified by MLCommons"
_NODE = 8.0
_SMALLEST_WEIGHT = 0.5
"""Bytes of a weight in 4 bits."""
_LABELS = ("generation", "vendor")
_NEEDED = ("bf16_tflops", "memory_gb_per_s", "memory_gib")
"""Facts that an accelerator of no table requires."""


def _read_known(
    column: str,
    cells: Mapping[str, Cell],
    typed: Mapping[str, TypedField],
    label: str,
) -> bool:
    """Return whether an accelerator is in the catalog. Raises: UserError for another one without facts."""
    name = str(cells.get(column, ""))
    if name and find_accelerator(name) is not None:
        return True
    missing = [fact for fact in _NEEDED if fact not in cells]
    near = [known for known in read_accelerators().index if name and name.lower() in known.lower()] or ["MI355X"]
    if missing:
        field = typed[column].name if column in typed else column
        fact = f"{label} has {name[:60]!r}" if name else f"{label} names none"
        raise UserError(
            f"{field} must be a known accelerator", fact, f"write {' or '.join(near)}, or add {', '.join(missing)}"
        )
    return False


def _read_years(when: pd.Series | pd.Timestamp, count: int) -> np.ndarray:
    """Return the decimal years of days, to the month, (count,)."""
    days = pd.DatetimeIndex(np.broadcast_to(np.asarray(when, dtype="datetime64[us]"), count))
    return np.asarray(days.year + (days.month - 1) / 12, dtype=float)


class AcceleratorRules(DescriptionRules):
    """Rules of systems of accelerators in MLPerf inference."""

    fields = (
        counted_field(
            alias_field("accelerator", "accelerator", "name of the accelerator", "MI355X"),
            "count",
            find_typed_accelerator,
        ),
        alias_field("accelerators", "count", "number of accelerators, of all nodes", "8"),
    )
    form_fields = ("accelerator", "count", "task", "variant", "engine")
    metric: ClassVar[str] = (
        "tokens (of language models), samples or queries a second, per accelerator: a derived metric"
    )
    entity_name = "accelerator"
    newest_alone = True
    price_head = "price of a system"
    named_field = "accelerator"
    short_example = "'8 x MI355X' or 'B200; count=4'"
    example = "--accelerator MI355X --accelerators 8"
    page_texts: ClassVar[Mapping[str, str]] = {
        "question": "How fast will this accelerator run the model?",
        "estimate": ESTIMATE,
        "marks": "MLPerf® is a registered trademark of MLCommons. The estimates are no MLPerf results.",
        "machines": "8 x MI355X; price=250000\n8 x B200; price=400000",
        "targets": "llama2-70b/Server >= 80000",
        "measured": "llama2-70b/Offline = 10000",
        "measured_machines": "8 x MI355X; task=llama2-70b/Offline; throughput=10000",
    }
    score_columns: ClassVar[tuple[str, ...]] = ("count",)
    power_remedy = "add the column watts, measured of the whole system: a power limit says nothing of efficiency"
    blocks = (
        Block(
            "software",
            ("engine", "engine_version"),
            (("accelerator",), ("generation",), ()),
            recent=True,
        ),
    )
    naming_columns = ("count", "variant")
    kind_columns = ("generation", "vendor")
    setup_columns = ("engine",)
    named_columns = ("generation", "vendor", "silicon")
    replaced: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "count": ("nodes",),
        "accelerator": (*FACTS, *_LABELS, "silicon", "is_processor"),
    }

    def read_entity_facts(
        self, raw: Mapping[str, Path], measured: Iterable[str], as_of: pd.Timestamp | None = None
    ) -> pd.DataFrame:
        """Return the facts of the catalog that were public before a day."""
        table = read_accelerators()
        known = table if as_of is None else table[pd.to_datetime(table["known_from"]) < as_of]
        facts = known[[*FACTS, *_LABELS]].assign(is_processor=known["kind"].eq("cpu"))
        return facts.astype(dict.fromkeys((*FACTS, "is_processor"), "float64"))

    def fill_entity_facts(self, cells: Cells, facts: EntityFacts) -> Cells:
        """Fill the facts of the accelerator; one of no catalog is no processor unless the user says so.

        Without its kind, the largest effect of a prediction falls away.
        """
        names = cells["accelerator"].tolist()
        filled = fill_missing(cells, facts.look_up(names, cells))
        is_new = np.array([name is None or find_accelerator(name) is None for name in names], dtype=bool)
        return fill_missing(filled, {"is_processor": np.where(is_new, 0.0, np.nan)})

    def fill_implied(self, cells: Cells) -> Cells:
        """Fill the nodes, eight accelerators each, and the power mode, which a system names where it has one."""
        modes = np.full(len(cells.index), "base", dtype=object)
        return fill_missing(cells, {"nodes": np.ceil(cells["count"] / _NODE), "variant": modes})

    def fill_date(self, cells: Cells, when: pd.Series | pd.Timestamp) -> Cells:
        """Fill the year of the round, in which the software is made."""
        return fill_missing(cells, {"year": _read_years(when, len(cells.index))})

    def fill_usual(self, cells: Cells, last: pd.Timestamp) -> Cells:
        """Fill a node of accelerators or two sockets of processors, a host of two processors, and the last round."""
        count = len(cells.index)
        filled = fill_missing(cells, {"count": np.where(cells["is_processor"] == 1, 2.0, _NODE)})
        usual = {
            "triton": np.zeros(count),
            "sockets": np.full(count, 2.0),
            "year": _read_years(last, count),
        }
        return self.fill_implied(fill_missing(filled, usual))

    def list_notes(
        self,
        cells: Mapping[str, Cell],
        typed: Mapping[str, TypedField],
        label: str,
    ) -> tuple[str, ...]:
        """Return what every answer must say. Raises: UserError for an unknown accelerator without facts."""
        notes = (f"every predicted value is an {ESTIMATE}; {self.metric}",)
        if _read_known("accelerator", cells, typed, label):
            return notes
        return (*notes, f"no data names the accelerator {cells.get('accelerator', '')!r}: its given facts count")

    def find_impossible(self, cells: Cells) -> dict[int, str]:
        """Return by row the weights that do not fit into the memory in 4 bits, the smallest format."""
        weights = _SMALLEST_WEIGHT * cells["params_1e9"]
        unit = cells["memory_gib"] * 2**30 / 1e9
        room = cells["count"] * unit
        reasons = {}
        for row in np.flatnonzero(weights > room).tolist():
            needed = int(np.ceil(weights[row] / unit[row]))
            fact = f"the weights alone, {weights[row]:.0f} GB in 4 bits, do not fit into {room[row]:.0f} GB of memory"
            reasons[row] = f"{fact}; use {needed} or more accelerators"
        return reasons

    def list_kinds(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield the accelerator where no catalog has it: no result of it was measured."""
        name = cells.get("accelerator")
        if isinstance(name, str) and find_accelerator(name) is None:
            yield f"the accelerator {name}"

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return the number and the name of the accelerators."""
        name = "a new accelerator" if pd.isna(cells[entity]) else str(cells[entity])
        count = cells.get("count", np.nan)
        return name if pd.isna(count) else f"{count:g} x {name}"


class PowerRules(AcceleratorRules):
    """Rules of systems whose power MLPerf measured: work per joule, which no number of systems changes."""

    metric = "tokens, samples or queries per joule of measured system power: a derived metric"
    score_columns = ()
    throughput_ending = "a second"
    """No task has it: these scores do not add up."""

    def list_vendors(self, cells: Mapping[str, Any]) -> list[Any]:
        """Return the vendors: the efficiency of one tells nothing of that of another."""
        return list(cells["vendor"])


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


class EnergyRules(DescriptionRules):
    """Rules of served models with their energy: facts of the GPU, the layout, and joules per token."""

    fields = (
        counted_field(alias_field("gpu", "gpu", "name of the GPU", "B200"), "gpus", find_typed_accelerator),
        alias_field("batch", "concurrency", "requests in progress at once, or items of a batch", "64"),
        alias_field("electricity-price", "kwh_price", "price of a kWh", "0.25"),
    )
    form_fields: ClassVar[tuple[str, ...]] = (
        "model",
        "gpu",
        "batch",
        "workload",
        "precision",
        "electricity-price",
    )
    entity_name = "model"
    named_field = "model"
    short_example = "'Qwen/Qwen3-14B; gpu=B200; batch=64'"
    example = "--set model=Qwen/Qwen3-14B --gpu B200 --batch 64"
    page_texts: ClassVar[Mapping[str, str]] = {
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
    naming_columns = ("gpu", "gpus", "concurrency")
    kind_columns = ("model", "gpu")
    power_meaning = "the GPUs alone"
    blocks = (Block("workload", ("workload",), (("model",), ()), recent=False),)
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
    shared_by: ClassVar[str] = "tensor_parallel"
    """Column of the GPUs that share a model."""
    usual: ClassVar[Mapping[str, Any]] = {
        "expert_parallel": 1.0,
        "data_parallel": 1.0,
        "precision": "bfloat16",
        "workload": "lm-arena-chat",
    }

    def list_kinds(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield the GPU where no catalog has it: no result of it was measured."""
        name = cells.get("gpu")
        if isinstance(name, str) and find_accelerator(name) is None:
            yield f"the GPU {name}"

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

    def list_notes(
        self,
        cells: Mapping[str, Cell],
        typed: Mapping[str, TypedField],
        label: str,
    ) -> tuple[str, ...]:
        """Return what the power includes. Raises: UserError for an unknown GPU without facts, or without a batch."""
        _read_known("gpu", cells, typed, label)
        if "concurrency" not in cells:
            raise UserError("a served model must have a batch", f"{label} has none", "add batch, such as 64")
        return ("power and energy are those of the GPUs alone, without host, network and cooling",)

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return the model, its GPUs and its batch."""
        name = super().name_machine(entity, cells)
        return f"{name}, {cells['gpus']:g} x {cells['gpu']}, batch {cells['concurrency']:g}"


class DiffusionRules(EnergyRules):
    """Rules of diffusion models with their energy per image or video."""

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
    blocks = (
        Block(
            "load",
            ("workload", "height", "width", "frames", "steps"),
            (("model",), ()),
            recent=False,
        ),
    )
    shared_by = "ulysses"
    usual: ClassVar[Mapping[str, Any]] = {"ring": 1.0, "precision": "bfloat16"}


MLPERF_INFERENCE = AcceleratorRules()
MLPERF_POWER = PowerRules()
ML_ENERGY = EnergyRules()
ML_ENERGY_DIFFUSION = DiffusionRules()
