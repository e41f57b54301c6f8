"""Base class of imputation rules: what varies by dataset when missing cells of a described machine are filled."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from perfcast.domain import find_description
from perfcast.inference.cells import Cells, EntityFacts
from perfcast.inference.donors import Block, JointRules
from perfcast.inference.machine_fields import Cell, Field, TypedField
from perfcast.schema.table import TASK_KIND, Table, Tag
from perfcast.utils.errors import UserError

_REMARKS = re.compile(r"\((?:r|tm|c)\)|[®™©\u200b]|\([^()]*\)|\[[^\[\]]*\]")
_DIGITS, _JOINTS = re.compile(r"\d+"), re.compile(r"[\s_.,;:/-]+")
SHARE = "accuracy"
"""Start of the kinds of tasks whose results are shares of correct answers."""


Numbers = Mapping[str, Any]
"""Numbers or arrays by name."""


class Violation(NamedTuple):
    """A machine that breaks a limit.

    `columns`: columns of the wrong value; the message names the first that the user typed. `fact`: the wrong value and
    the rule; `{entity}` in it stands for the name of the entity. `remedy`: what the user can do.
    """

    line: int
    columns: tuple[str, ...]
    fact: str
    remedy: str


class NamedEntity(NamedTuple):
    """Entity that no data names: its normalized name, the design that the name tells ("" for none), and cells."""

    name: str
    design: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class FactSource:
    """Facts of one subject, an entity or a family, that one source made public on one day."""

    subject: str
    known_from: str
    source: str
    facts: tuple[str, ...]


@dataclass(frozen=True)
class DatasetBasis:
    """Measured results behind the estimates of some tasks: `results` of a dataset up to a month, "" without dates.

    `bridged_from` is the dataset whose estimates are features, "" for none. `source` is the address of the results,
    `retrieved` when and by whom they were; `notice` is what every answer says of the dataset. All three may be "".
    """

    dataset: str
    results: int
    until: str
    bridged_from: str
    tasks: tuple[str, ...]
    source: str = ""
    retrieved: str = ""
    notice: str = ""

    def __str__(self) -> str:
        bridge = f"bridged from {self.bridged_from}, " if self.bridged_from else ""
        return f"{self.dataset}: {bridge}{self.results:,} results{f' to {self.until}' if self.until else ''}"

    @property
    def origin(self) -> str:
        """The address of the results, and when and by whom they were retrieved."""
        return ", ".join(filter(None, (self.source, self.retrieved and f"retrieved {self.retrieved}")))


@dataclass(frozen=True)
class Check:
    """Command that would measure a task of a machine, and the lines of its configuration."""

    task: str
    command: str
    configuration: str


def name_kinds(kinds: Mapping[str, Any]) -> list[str]:
    """Return kinds of a machine, each a word and a name; missing names have none."""
    return [f"{word} {name}" for word, name in kinds.items() if isinstance(name, str)]


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


def is_known(cell: object) -> bool:
    """Return whether a cell is a number above 0."""
    return isinstance(cell, (int, float)) and cell == cell and cell > 0  # noqa: PLR0124  (NaN differs from itself)


class DescriptionRules:
    """Rules of a dataset without knowledge about machines: nothing is filled and nothing is refused.

    Methods that fill take and return every standard column; they fill missing cells, change no given one, and return
    the same object where there is nothing to fill.
    """

    fields: ClassVar[tuple[Field, ...]] = ()
    """Short fields beside the columns."""
    form_fields: ClassVar[tuple[str, ...]] = ()
    """Fields and columns that the web page asks for first, in this order; without any, the first columns."""
    entity_name: ClassVar[str] = "entity"
    """What the entity is, in messages."""
    named_field: ClassVar[str] = ""
    """Field of the name in a short text of a machine; "" for the column of the entity."""
    short_example: ClassVar[str] = "'NAME' or 'NAME; FIELD=VALUE'"
    """Short texts of a machine, as a remedy for others."""
    page_texts: ClassVar[Mapping[str, str]] = {}
    """Texts of the web page that differ from its own: its `question`, the name of an `estimate` beside
    every figure, trademarks (`marks`), and examples of `machines`, `targets`, `measured` and `measured_machines`."""
    example: ClassVar[str] = "--set NAME=VALUE"
    """Flags of a machine, as a remedy where none is described."""
    lower_is_better: ClassVar[bool] = False
    """Whether the targets are times or costs."""
    derived: ClassVar[tuple[DerivedOutput, ...]] = ()
    """Quantities that follow from the predictions of several tasks."""
    price_columns: ClassVar[tuple[str, ...]] = ()
    """Columns whose product multiplies the given price of one unit; a price is then one of an hour."""
    task_units: Mapping[str, str] = MappingProxyType({})
    """Units of tasks whose target has none, since its tasks are of several."""
    price_head: ClassVar[str] = "price"
    """Head of the column of prices: what one price buys."""
    newest_alone: ClassVar[bool] = False
    """Whether of the published results of a machine only the newest count: software of earlier ones is out of date."""
    score_columns: ClassVar[tuple[str, ...]] = ()
    """Columns whose product multiplies a score, which is that of one unit, to the score of the whole machine."""
    origin_meanings: ClassVar[Mapping[str, str]] = {}
    """Meanings of origins of values that differ from `cells.ORIGINS`."""
    held_equal: ClassVar[tuple[str, ...]] = ()
    """Columns of which all candidates of a ranking that state none have one value, in this order."""
    naming_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that name a machine beside its entity."""
    enumerated: ClassVar[str | None] = None
    """Column with an answer for each of its values where a machine leaves it out, see `list_alternatives`."""
    task_aliases: Mapping[str, str] = MappingProxyType({})
    """Other names of tasks, such as those of the publisher of the results."""
    task_titles: Mapping[str, str] = MappingProxyType({})
    """Names of tasks in answers, where they are not the tasks' own."""
    new_entity_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that an entity of unknown design requires, each with the columns that may give it."""
    new_entity_hints: ClassVar[tuple[str, ...]] = ()
    """Fields that narrow the interval of an unknown entity, the most important first."""
    group_columns: ClassVar[tuple[str, ...]] = ()
    """Columns of `read_entity_facts` that group entities by names that people type, such as the family."""
    design_column: ClassVar[str | None] = None
    """Column of the design, whose value must have been measured. None: any name of an entity is accepted."""
    blocks: ClassVar[tuple[Block, ...]] = ()
    """Blocks of hot-deck imputation, in this order: later ones may use what earlier ones filled."""
    joint: ClassVar[JointRules | None] = None
    """Rules of typical set-ups; without them, usual values alone are assumed."""
    setup_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that name the set-up of a result: published results of a machine are summarized by them."""
    assumed_identity: ClassVar[tuple[str, ...]] = ()
    """Columns tagged IDENTITY that may be assumed: published results of the assumed value are shown."""
    identifying_columns: ClassVar[tuple[str, ...]] = ()
    """Columns in which a published result must equal the machine, beside those tagged IDENTITY."""
    description_levels: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Columns that users give, level by level, each level with those before it. A last level gives everything."""
    named_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that the name of the entity tells: no level of description gives them."""
    power_columns: ClassVar[tuple[str, ...]] = ()
    """Columns whose product stands for the power of a machine where the user gives none. Units: W."""
    power_meaning: ClassVar[str] = ""
    """What the product of `power_columns` includes."""
    power_remedy: ClassVar[str] = "add the column watts"
    """What gives the power of a machine where it is not known."""
    power_ratios: ClassVar[tuple[tuple[float, float], tuple[float, float]]] = ((0.0, 0.0), (0.0, 0.0))
    """Mean and standard deviation of the natural logarithms of two ratios: watts of a whole machine at full load over
    the product of `power_columns`, and watts at idle over those at full load."""
    power_targets: ClassVar[tuple[str, ...]] = ()
    """Targets of a champion of power: watts of a machine at idle and at full load."""
    throughput_ending: ClassVar[str] = ""
    """End of the tasks whose scores machines add up to: only these can size a fleet."""
    kind_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that tell the kinds of a machine."""
    capacities: ClassVar[Mapping[str, str]] = {}
    """Columns that the entity bounds, with its own column: a larger value means another entity."""
    largest_values: ClassVar[Mapping[str, str]] = {}
    """Columns with the column of the entity that has their largest possible value, beside `capacities`."""
    carried: float = 0.0
    """Share of what user measurements change in estimates of the base that those on a bridge take over, for an entity
    without results in the base."""
    replaced: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By varied column: columns that are derived anew even where the user gave them, since they would contradict it."""

    @property
    def size_note(self) -> str:
        """Text on scores that are multiplied by `score_columns`, "" without any."""
        columns = " x ".join(self.score_columns)
        return f"scores are those of whole machines: estimates x {columns}" if columns else ""

    def size_of(self, cells: Mapping[str, Any]) -> float:
        """Return the factor from a score to that of the whole machine, NaN where it is not known."""
        return float(math.prod(cells[name] for name in self.score_columns))

    def read_entity_facts(
        self, raw: Mapping[str, Path], measured: Iterable[str], as_of: pd.Timestamp | None = None
    ) -> pd.DataFrame:
        """Return the facts of every listed or measured entity, one row per key (index), with standard columns.

        `raw` maps the ingested sources to their folders. Only facts that were public before `as_of` count.
        """
        return pd.DataFrame()

    def read_entity_name(self, name: str) -> NamedEntity:
        """Return what the typed name of an unlisted entity tells."""
        return NamedEntity(name, "", {})

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return the name of a machine by its entity and `naming_columns`; `entity` is the column of the entity."""
        return f"a new {entity}" if pd.isna(cells[entity]) else str(cells[entity])

    def read_key(self, name: str) -> str:
        """Return the join key of a typed name: marks and bracketed remarks removed, case folded; never empty."""
        folded = " ".join(name.casefold().split())
        return " ".join(_REMARKS.sub(" ", folded).split()) or folded

    def shorten_key(self, key: str) -> str:
        """Return a key without words that tell nothing."""
        return key

    def model_number(self, key: str) -> str:
        """Return the letters and digits of the model: the name from the first word with a digit, "" without any."""
        words = key.replace("_", " ").split()
        named = next((place for place, word in enumerate(words) if _DIGITS.search(word)), len(words))
        return _JOINTS.sub("", " ".join(words[named:]))

    def list_levels(self, table: Table, describing: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the columns that are given at every level of description, from the name to all; none without levels.

        Args: `describing` are all columns that may describe a machine. Every level gives the task and the columns of
        the levels before; the last gives all but those that the name of the entity tells.
        """
        if not self.description_levels:
            return ()
        given: list[str] = [table.column_of(Tag.TASK)]
        levels = []
        for columns in self.description_levels:
            given += [name for name in columns if name in describing]
            levels.append(tuple(given))
        everything = [name for name in describing if name not in (*given, *self.named_columns)]
        return (*levels, (*given, *everything))

    def alias_tasks(self, tasks: list[str]) -> Mapping[str, str]:
        """Return other names of the measured tasks: `task_aliases`, or what their own names tell."""
        return self.task_aliases

    def read_files(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of a machine with the content of the files that they name.

        Raises: UserError for a file that cannot be used.
        """
        return dict(values)

    def read_this_machine(self, given: Container[str]) -> tuple[dict[str, object], str]:
        """Return the fields of this machine, without the columns that are given, and a text that describes them."""
        raise UserError(
            "--this-machine must be of a dataset of servers", "this champion is of another one", self.example
        )

    def add_user_facts(self, champion: Any, path: Path) -> Any:
        """Return the champion with the facts of a user's table; machines without facts stay as they are."""
        return champion

    def list_fact_sources(self, cells: Mapping[str, Any], user_facts: Sequence[Any] = ()) -> tuple[FactSource, ...]:
        """Return the dated facts on the entity of a machine, the newest first.

        Args: `user_facts`, of a user's table, count first.
        """
        return ()

    def describe_check(self, task: str, cells: Mapping[str, Any]) -> Check | None:
        """Return how to measure a task of a machine, None where no command is known."""
        return None

    def fill_entity_facts(self, cells: Cells, facts: EntityFacts) -> Cells:
        """Fill what is known of the entities; `facts` is the table of `read_entity_facts`."""
        return cells

    def fill_implied(self, cells: Cells) -> Cells:
        """Fill what other cells of the same row imply."""
        return cells

    def fill_date(self, cells: Cells, when: pd.Series | pd.Timestamp) -> Cells:
        """Fill what follows from the day of the measurement, asked for or of every machine, (n,), beside `day`."""
        return cells

    def fill_usual(self, cells: Cells, last: pd.Timestamp) -> Cells:
        """Fill usual values that need no donor; `last` is the month of the newest result."""
        return cells

    def list_alternatives(self, cells: Cells) -> list[tuple[float, ...]]:
        """Return the values of `enumerated` that every row can have, beside those of measured results."""
        return [()] * len(cells.index)

    def count_variants(self, cells: Cells) -> np.ndarray:
        """Return of how many kinds every row may be, with equal chances, (n,) int."""
        return np.ones(len(cells.index), dtype=int)

    def fill_variant(self, cells: Cells, numbers: np.ndarray, facts: EntityFacts) -> Cells:
        """Fill the facts of one of the kinds that every row may be, by its number from 0, -1 for none, (n,) int."""
        return cells

    def find_sizes(self, known: Cells, completed: Cells) -> dict[str, np.ndarray]:
        """Return numbers that a fleet has in total, of machines before and after imputation, (n,) each by name."""
        return {}

    def find_violations(self, cells: Cells) -> Iterator[Violation]:
        """Yield every limit that a row breaks; `Violation.line` is its index."""
        yield from ()

    def find_impossible(self, cells: Cells) -> dict[int, str]:
        """Return by number of the row why a machine cannot do its task; `find_violations` know no task."""
        return {}

    def list_vendors(self, cells: Mapping[str, Any]) -> list[Any]:
        """Return the vendors of machines, of which results must have been measured; none where any result counts."""
        return []

    def find_bounds(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest possible result of every row, (n,) each; a share is at most 1."""
        count = len(cells.index)
        kinds = cells[TASK_KIND].tolist() if TASK_KIND in cells else []
        is_share = [str(kind).startswith(SHARE) for kind in kinds] or [False] * count
        return np.zeros(count), np.where(is_share, 1.0, np.inf)

    def predict_logs(self, cells: Cells, predict: Callable[[Cells], np.ndarray]) -> np.ndarray:
        """Return the natural logarithms of the results of machines, (n, targets).

        `predict` returns those of the predictor: rules may ask it about other machines, and combine its answers.
        """
        return predict(cells)

    def list_notes(self, cells: Mapping[str, Cell], typed: Mapping[str, TypedField], label: str) -> Iterable[str]:
        """Return remarks on a machine that is unusual but possible, such as one with a name that no table lists.

        Raises: UserError where a name needs facts that are not given.
        """
        return ()

    def limit_trust(self, cells: Mapping[str, Any]) -> str:
        """Return why an answer about a machine is never of high trust, "" where it may be."""
        return ""

    def list_assumed_notes(self, cells: Mapping[str, Any], assumed: Container[str]) -> Iterator[str]:
        """Yield remarks on columns that are assumed."""
        yield from ()

    def list_completed_notes(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield remarks on a machine with all its cells; a missing one is NaN or None."""
        yield from ()

    def list_kinds(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield the kinds of a machine by its `kind_columns`: an answer names those that were never measured."""
        yield from ()

    def find_deductions(self, cells: Mapping[str, Any], measured_kinds: Container[str]) -> np.ndarray:
        """Return what to take off the logarithms of predictions of kinds that were never measured, (n,) or (1,)."""
        return np.zeros(1)


class RulesOfTimes(DescriptionRules):
    """Rules of a dataset without knowledge about machines whose targets are times or costs."""

    lower_is_better = True


def find_rules(dataset: str, *, lower_is_better: bool = False) -> DescriptionRules:
    """Return the rules of a dataset, those of the base class where it has none of its own."""
    rules: DescriptionRules | None = find_description(dataset)
    return rules or (RulesOfTimes() if lower_is_better else DescriptionRules())
