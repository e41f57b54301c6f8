"""Description rules of accelerators: names, facts, usual systems, and what their answers must say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.accelerators.catalog import FACTS, find_accelerator, find_typed_accelerator, read_accelerators
from perfcast.inference.cells import Cells, EntityFacts, fill_missing
from perfcast.inference.donors import Block
from perfcast.inference.machine_fields import Cell, TypedField, alias_field, counted_field
from perfcast.inference.rules.description_rules import DescriptionRules
from perfcast.inference.rules.limits import Limits
from perfcast.inference.rules.names import Names
from perfcast.inference.rules.presentation import Presentation
from perfcast.inference.rules.typical_values import TypicalValues
from perfcast.utils.errors import UserError

ESTIMATE = "estimate by perfcast, not verified by MLCommons"
_NODE = 8.0
_SMALLEST_WEIGHT = 0.5
"""Bytes of a weight in 4 bits."""
_LABELS = ("generation", "vendor")
_NEEDED = ("bf16_tflops", "memory_gb_per_s", "memory_gib")
"""Facts that an accelerator of no table requires."""


def read_known(
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


class AcceleratorNames(Names):
    """Names of systems of accelerators in MLPerf inference."""

    fields = (
        counted_field(
            alias_field("accelerator", "accelerator", "name of the accelerator", "MI355X"),
            "count",
            find_typed_accelerator,
        ),
        alias_field("accelerators", "count", "number of accelerators, of all nodes", "8"),
    )
    entity_name = "accelerator"
    named_field = "accelerator"
    naming_columns = ("count", "variant")
    named_columns = ("generation", "vendor", "silicon")

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return the number and the name of the accelerators."""
        name = "a new accelerator" if pd.isna(cells[entity]) else str(cells[entity])
        count = cells.get("count", np.nan)
        return name if pd.isna(count) else f"{count:g} x {name}"


class AcceleratorTypicalValues(TypicalValues):
    """Typical values of systems of accelerators in MLPerf inference."""

    blocks = (
        Block(
            "software",
            ("engine", "engine_version"),
            (("accelerator",), ("generation",), ()),
            recent=True,
        ),
    )

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


class AcceleratorLimits(Limits):
    """Limits of systems of accelerators in MLPerf inference."""

    kind_columns = ("generation", "vendor")
    replaced: Mapping[str, tuple[str, ...]] = {
        "count": ("nodes",),
        "accelerator": (*FACTS, *_LABELS, "silicon", "is_processor"),
    }

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


class AcceleratorPresentation(Presentation):
    """Presentation of systems of accelerators in MLPerf inference."""

    form_fields = ("accelerator", "count", "task", "variant", "engine")
    metric: str = "tokens (of language models), samples or queries a second, per accelerator: a derived metric"
    newest_alone = True
    price_head = "price of a system"
    short_example = "'8 x MI355X' or 'B200; count=4'"
    example = "--accelerator MI355X --accelerators 8"
    page_texts: Mapping[str, str] = {
        "question": "How fast will this accelerator run the model?",
        "estimate": ESTIMATE,
        "marks": "MLPerf® is a registered trademark of MLCommons. The estimates are no MLPerf results.",
        "machines": "8 x MI355X; price=250000\n8 x B200; price=400000",
        "targets": "llama2-70b/Server >= 80000",
        "measured": "llama2-70b/Offline = 10000",
        "measured_machines": "8 x MI355X; task=llama2-70b/Offline; throughput=10000",
    }
    score_columns: tuple[str, ...] = ("count",)
    power_remedy = "add the column watts, measured of the whole system: a power limit says nothing of efficiency"
    setup_columns = ("engine",)

    def list_notes(
        self,
        cells: Mapping[str, Cell],
        typed: Mapping[str, TypedField],
        label: str,
    ) -> tuple[str, ...]:
        """Return what every answer must say. Raises: UserError for an unknown accelerator without facts."""
        notes = (f"every predicted value is an {ESTIMATE}; {self.metric}",)
        if read_known("accelerator", cells, typed, label):
            return notes
        return (*notes, f"no data names the accelerator {cells.get('accelerator', '')!r}: its given facts count")


class PowerLimits(AcceleratorLimits):
    """Limits of systems whose power MLPerf measured."""

    def list_vendors(self, cells: Mapping[str, Any]) -> list[Any]:
        """Return the vendors: the efficiency of one tells nothing of that of another."""
        return list(cells["vendor"])


class PowerPresentation(AcceleratorPresentation):
    """Presentation of systems whose power MLPerf measured: work per joule, which no number of systems changes."""

    metric = "tokens, samples or queries per joule of measured system power: a derived metric"
    score_columns = ()
    throughput_ending = "a second"
    """No task has it: these scores do not add up."""


MLPERF_INFERENCE = DescriptionRules(
    AcceleratorNames(), AcceleratorTypicalValues(), AcceleratorLimits(), AcceleratorPresentation()
)
MLPERF_POWER = DescriptionRules(AcceleratorNames(), AcceleratorTypicalValues(), PowerLimits(), PowerPresentation())
