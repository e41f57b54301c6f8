"""Presentation of a dataset's answers: examples, notes, derived outputs, prices and published results."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from perfcast.inference.cells import Cells
from perfcast.inference.machine_fields import Cell, TypedField

Numbers = Mapping[str, Any]
"""Numbers or arrays by name."""


@dataclass(frozen=True)
class FactSource:
    """Facts of one subject, an entity or a family, that one source made public on one day."""

    subject: str
    known_from: str
    source: str
    facts: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """Command that would measure a task of a machine, and the lines of its configuration."""

    task: str
    command: str
    configuration: str


@dataclass(frozen=True)
class DerivedOutput:
    """Formula over the scores of tasks and over columns of the machine; it rises, or falls, with every score.

    `compute` takes the scores by task and the cells by column.
    """

    name: str
    unit: str
    formula: str
    tasks: tuple[str, ...]
    columns: tuple[str, ...]
    compute: Callable[[Numbers, Numbers], Any]


class Presentation:
    """Presentation of a dataset without knowledge about machines: scores rise, and nothing follows from them."""

    form_fields: tuple[str, ...] = ()
    """Fields and columns that the web page asks for first, in this order; without any, the first columns."""
    example: str = "--set NAME=VALUE"
    """Flags of a machine, as a remedy where none is described."""
    short_example: str = "'NAME' or 'NAME; FIELD=VALUE'"
    """Short texts of a machine, as a remedy for others."""
    page_texts: Mapping[str, str] = {}
    """Texts of the web page that differ from its own: its `question`, the name of an `estimate` beside
    every figure, trademarks (`marks`), and examples of `machines`, `targets`, `measured` and `measured_machines`."""
    origin_meanings: Mapping[str, str] = {}
    """Meanings of origins of values that differ from `cells.ORIGINS`."""
    lower_is_better: bool = False
    """Whether the targets are times or costs."""
    task_units: Mapping[str, str] = MappingProxyType({})
    """Units of tasks whose target has none, since its tasks are of several."""
    score_columns: tuple[str, ...] = ()
    """Columns whose product multiplies a score, which is that of one unit, to the score of the whole machine."""
    derived: tuple[DerivedOutput, ...] = ()
    """Quantities that follow from the predictions of several tasks."""
    price_columns: tuple[str, ...] = ()
    """Columns whose product multiplies the given price of one unit; a price is then one of an hour."""
    price_head: str = "price"
    """Head of the column of prices: what one price buys."""
    power_columns: tuple[str, ...] = ()
    """Columns whose product stands for the power of a machine where the user gives none. Units: W."""
    power_meaning: str = ""
    """What the product of `power_columns` includes."""
    power_remedy: str = "add the column watts"
    """What gives the power of a machine where it is not known."""
    power_ratios: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0))
    """Mean and standard deviation of the natural logarithms of two ratios: watts of a whole machine at full load over
    the product of `power_columns`, and watts at idle over those at full load."""
    power_targets: tuple[str, ...] = ()
    """Targets of a champion of power: watts of a machine at idle and at full load."""
    memory_columns: tuple[str, ...] = ()
    """Columns whose product is the memory of a machine. Units: GB, a power of two."""
    instance_memory: str = ""
    """Column of the facts of entities with the memory of those that are shares of a host."""
    fact_columns: Mapping[str, str] = MappingProxyType({})
    """Columns of the facts of entities that a table of factors has, by their names there."""
    throughput_ending: str = ""
    """End of the tasks whose scores machines add up to: only these can size a fleet."""
    newest_alone: bool = False
    """Whether of the published results of a machine only the newest count: software of earlier ones is out of date."""
    setup_columns: tuple[str, ...] = ()
    """Columns that name the set-up of a result: published results of a machine are summarized by them."""
    assumed_identity: tuple[str, ...] = ()
    """Columns tagged IDENTITY that may be assumed: published results of the assumed value are shown."""
    identifying_columns: tuple[str, ...] = ()
    """Columns in which a published result must equal the machine, beside those tagged IDENTITY."""

    @property
    def size_note(self) -> str:
        """Text on scores that are multiplied by `score_columns`, "" without any."""
        columns = " x ".join(self.score_columns)
        return f"scores are those of whole machines: estimates x {columns}" if columns else ""

    def size_of(self, cells: Mapping[str, Any]) -> float:
        """Return the factor from a score to that of the whole machine, NaN where it is not known."""
        return float(math.prod(cells[name] for name in self.score_columns))

    def find_sizes(self, known: Cells, completed: Cells) -> dict[str, np.ndarray]:
        """Return numbers that a fleet has in total, of machines before and after imputation, (n,) each by name."""
        return {}

    def list_notes(self, cells: Mapping[str, Cell], typed: Mapping[str, TypedField], label: str) -> Iterable[str]:
        """Return remarks on a machine that is unusual but possible, such as one with a name that no table lists.

        Raises: UserError where a name needs facts that are not given.
        """
        return ()

    def list_assumed_notes(self, cells: Mapping[str, Any], assumed: Container[str]) -> Iterator[str]:
        """Yield remarks on columns that are assumed."""
        yield from ()

    def list_completed_notes(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield remarks on a machine with all its cells; a missing one is NaN or None."""
        yield from ()

    def list_fact_sources(self, cells: Mapping[str, Any], user_facts: Sequence[Any] = ()) -> tuple[FactSource, ...]:
        """Return the dated facts on the entity of a machine, the newest first.

        Args: `user_facts`, of a user's table, count first.
        """
        return ()

    def describe_check(self, task: str, cells: Mapping[str, Any]) -> Check | None:
        """Return how to measure a task of a machine, None where no command is known."""
        return None
