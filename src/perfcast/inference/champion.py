"""Champion of a dataset, with what predictions of described machines need: fields, rules, neighbors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.inference.cells import Cells, CompletedMachines
from perfcast.inference.donors import HotDeck, JointDeck
from perfcast.inference.machine_fields import MachineFields, alias_field
from perfcast.inference.machine_files import EXTRAS, OF_FLEETS, MachineEntry, Machines, is_table, read_machines
from perfcast.inference.measured_index import NeighborIndex, PublishedIndex
from perfcast.inference.name_lookup import EntityNames, TaskNames
from perfcast.inference.reference_data import DatasetBasis, ReferenceData, describing_columns
from perfcast.inference.rules.description_rules import DescriptionRules, find_rules
from perfcast.inference.rules.names import Names
from perfcast.inference.typical_table import TypicalMachines
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import LOWER_IS_BETTER, Column, Kind, Table, Tag, build_table
from perfcast.uncertainty.conformal import UncertaintyModel
from perfcast.utils.errors import UserError

_LATEST = pd.DateOffset(months=12)
"""Longest time after the newest result for which an answer is given unasked."""


@dataclass(frozen=True)
class Base(ABC):
    """Champion of another dataset, the name of its columns, and its task by each task of the bridged dataset.

    How it estimates is in `bridge.Bridge`, which completes machines of a champion.
    """

    champion: Champion
    name: str
    tasks: Mapping[str, str]

    @abstractmethod
    def fill_typical(self, machines: CompletedMachines, excluded: Collection[str]) -> Cells:
        """Return machines of the bridged dataset with the missing cells that their typical machines have in the base.

        So both assume the same hardware, whichever of them is asked. Columns `excluded` are not filled: each dataset
        has the day and the software of its own results.
        """

    @abstractmethod
    def add_estimates(self, table: Table) -> Table:
        """Append the estimates of machines to their table."""


@dataclass
class Champion:
    """Best predictor of a dataset, fitted on every row, with its reference data and calibration.

    `calibrated` and `neighbor_index` are None where too few rows were there for a calibration. `base` estimates
    features of the machines, `power` the watts of machines at idle and at full load. `source`, `retrieved` and `notice`
    are those of `DatasetBasis`. The other attributes follow from these; they are not there for a champion that
    describes no machines.

    `entity` and `task` are the columns with these tags. `tasks` have predictions, in the order of the answers;
    `targets_of` are the targets that each was measured in, `typical_rows` the measured row whose first target is the
    median of its last year. `designs` are the measured ones, the most measured first (see
    `Names.design_column`), `measured_kinds` those of machines with results. `joint_deck` donates whole
    set-ups (None without rules of them), `hot_deck` usual values. `typical_machines` are those of `saved_typical` and
    those that were made since.
    """

    dataset: str
    name: str
    preset: str
    features: tuple[str, ...]
    predictor: Predictor
    reference_data: ReferenceData
    calibrated: UncertaintyModel | None = None
    neighbor_index: NeighborIndex | None = None
    base: Base | None = None
    power: Champion | None = None
    source: str = ""
    retrieved: str = ""
    notice: str = ""
    saved_typical: pd.DataFrame | None = field(default=None, repr=False)
    rules: DescriptionRules = field(init=False)
    describes_machines: bool = field(init=False)
    entity: str = field(init=False)
    task: str = field(init=False)
    tasks: list[str] = field(init=False)
    fields: MachineFields = field(init=False)
    task_names: TaskNames = field(init=False)
    entity_names: EntityNames = field(init=False)
    designs: list[str] = field(init=False)
    measured_kinds: frozenset[str] = field(init=False)
    description_levels: tuple[tuple[str, ...], ...] = field(init=False)
    hot_deck: HotDeck = field(init=False)
    joint_deck: JointDeck | None = field(init=False)
    typical_machines: TypicalMachines = field(init=False, repr=False)
    published_index: PublishedIndex = field(init=False)
    targets_of: Mapping[str, Sequence[str]] = field(init=False)
    typical_rows: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        measured, frame = self.reference_data.measured, self.reference_data.measured.frame
        # a window of seconds describes no machine
        self.describes_machines = all(column.kind is not Kind.SEQUENCE for column in measured.columns)
        if not self.describes_machines:
            return
        self.rules = rules = find_rules(self.dataset, lower_is_better=measured.facts.get(LOWER_IS_BETTER) is True)
        names = rules.names
        self.entity, self.task = entity, task = measured.column_of(Tag.ENTITY), measured.column_of(Tag.TASK)
        task_of = frame[task].astype("str").where(frame[task].notna())
        self.tasks = sorted(task_of.dropna().unique())
        columns = describing_columns(measured, self.features)
        counts = [column.name for column in columns if column.kind is Kind.NUMERICAL and not column.unit]
        named = alias_field("task", task, "the predicted quantity", next(iter(self.tasks), ""))
        is_free = "task" not in (column.name for column in columns)
        whole = [name for name in counts if _is_whole(frame[name].to_numpy())]
        self.fields = MachineFields(columns, (*names.fields, *([named] if is_free else [])), whole)
        self.task_names = TaskNames(self.tasks, names.alias_tasks(self.tasks))
        facts, counted = self.reference_data.entity_facts, frame[entity].astype("str").value_counts().index
        known_groups = [facts[name].dropna() for name in names.group_columns]
        groups = [(str(group), str(key)) for each in known_groups for key, group in zip(each.index, each, strict=True)]
        self.entity_names = EntityNames(names, [*counted, *facts.index], groups)
        design = names.design_column
        self.designs = [] if design is None else list(frame[design].value_counts().index)
        limits = rules.limits
        kinds = frame[list(limits.kind_columns)].astype(object).drop_duplicates().itertuples(index=False)
        known = (dict(zip(limits.kind_columns, row, strict=True)) for row in kinds)
        self.measured_kinds = frozenset(kind for row in known for kind in limits.list_kinds(row))
        self.description_levels = list_levels(names, measured, list(self.fields.columns))
        self.hot_deck = HotDeck(measured)
        joint = rules.typical_values.joint
        self.joint_deck = JointDeck(measured, joint) if joint else None
        self.typical_machines = TypicalMachines(self.saved_typical, len(self.tasks))
        self.published_index = PublishedIndex(self.reference_data, rules.presentation)
        self._modules = [plugins.load("features", name) for name in self.features]
        targets = self.predictor.targets_
        scored = frame[list(targets)].notna().groupby(task_of).any()
        self.targets_of = {each: [name for name in targets if scored.at[each, name]] for each in self.tasks}
        self.typical_rows = self.reference_data.find_typical_rows(targets)

    def __repr__(self) -> str:
        return f"<Champion {self.name} of {self.dataset}: {len(self.reference_data.measured.frame)} measured results>"

    def require_described(self) -> Self:
        """Return the champion. Raises: UserError when it does not predict described machines."""
        if self.describes_machines:
            return self
        fact = f"that of {self.dataset!r} predicts from the last seconds of a running one"
        remedy = "choose a champion of described machines"
        raise UserError("the champion must predict described machines", fact, remedy)

    def require_power(self) -> Self:
        """Return the champion. Raises: UserError when it does not predict watts at idle and at full load."""
        targets = self.describes_machines and self.rules.presentation.power_targets
        if targets and {*targets} <= {*self.predictor.targets_}:
            return self
        fact = f"that of {self.dataset!r} does not"
        raise UserError("a champion of power must predict watts at idle and at full load", fact, "name another one")

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The dataset, the predictor, its preset and the month of the newest result, which answers name."""
        return self.dataset, self.name, self.preset, self.results_until

    @cached_property
    def results_until(self) -> str:
        """The month of the newest result, trained on or learned later, as 2024-12; "" without dates."""
        measured, known = self.reference_data.measured, self.calibrated.known if self.calibrated else None
        later = () if known is None or known.months is None else known.months
        dates = [*measured.frame[measured.select(tag=Tag.TIME)].max(), pd.Series(later, dtype="datetime64[ns]").max()]
        newest = max((date for date in dates if pd.notna(date)), default=None)
        return "" if newest is None else f"{newest:%Y-%m}"

    def find_month(self, when: pd.Timestamp | None = None) -> pd.Timestamp | None:
        """Return the month that an answer is for: the one asked for, or else this one.

        It is at most a year after the newest result, for which intervals were tested. None without dates.
        """
        if when is not None or not self.results_until:
            return when
        newest = pd.Timestamp(self.results_until)
        this_month = pd.Timestamp.now().to_period("M").to_timestamp()
        return min(max(this_month, newest), newest + _LATEST)

    def name_month(self, when: pd.Timestamp | None = None) -> str:
        """Return the month that an answer is for, as 2026-11, "" without dates."""
        month = self.find_month(when)
        return "" if month is None else f"{month:%Y-%m}"

    @property
    def basis(self) -> DatasetBasis:
        """The measured results behind the answers."""
        titles, bridged_from = self.rules.names.task_titles, self.base.champion.dataset if self.base else ""
        tasks = tuple(titles.get(task, task) for task in self.tasks)
        results = len(self.reference_data.measured.frame)
        about = (self.source, self.retrieved, self.notice)
        return DatasetBasis(self.dataset, results, self.results_until, bridged_from, tasks, *about)

    @property
    def notices(self) -> tuple[str, ...]:
        """Notice of the dataset, where it has one."""
        return (self.notice,) if self.notice else ()

    @cached_property
    def measured_entities(self) -> frozenset[str]:
        """The entities with measured results."""
        return frozenset(self.reference_data.measured.frame[self.entity].dropna().astype("str").unique())

    @cached_property
    def measured_vendors(self) -> list[str]:
        """The vendors with measured results, where the rules ask for them."""
        frame = self.reference_data.measured.frame
        vendors = self.rules.limits.list_vendors({str(name): frame[name] for name in frame})
        return sorted({vendor for vendor in vendors if isinstance(vendor, str)})

    def has_measured(self, kind: str, cells: Mapping[str, Any]) -> bool:
        """Return whether a kind of a machine was measured, for a machine without own results also by the base."""
        known = kind in self.measured_kinds
        if self.base is None or cells[self.entity] in self.measured_entities:
            return known
        return known and kind in self.base.champion.measured_kinds

    def limit_trust(self, cells: Mapping[str, Any]) -> str:
        """Return why an answer about a machine is never of high trust, "" where it may be."""
        reason = self.rules.limits.limit_trust(cells)
        if reason or self.base is None:
            return reason
        measured = self.measured_entities | self.base.champion.measured_entities
        return "" if cells[self.entity] in measured else f"{self.rules.names.entity_name} measured in neither suite"

    @property
    def named_field(self) -> str:
        """The field of the name in a short text of a machine."""
        return self.rules.names.named_field or self.entity

    def derive_features(self, cells: Cells) -> Table:
        """Return machines with every standard column, and the features that the predictor reads; no labels."""
        return self.add_estimates(self.derive_columns(cells))

    def add_estimates(self, table: Table) -> Table:
        """Return machines with the estimates of the base, where there is one."""
        return table if self.base is None else self.base.add_estimates(table)

    def derive_columns(self, cells: Cells) -> Table:
        """Return machines with every standard column, and the features that follow from these; no labels."""
        frame = Cells(cells, np.arange(len(cells.index))).to_frame(coded=True)
        table = Table(self.dataset, frame, self.reference_data.measured.columns)
        for module in self._modules:
            if not getattr(module, "LABELS_ONLY", False):
                table = module.derive(table)
        return table

    def predict_logs(self, cells: Cells) -> np.ndarray:
        """Return the predictor's answers for machines with every standard column, in natural logarithms."""
        predicted = self.predictor.predict(self.derive_features(cells).frame)
        return np.asarray(np.log(predicted.to_numpy(dtype=float)))

    def read_entries(self, machines: Machines) -> list[MachineEntry]:
        """Return the entries of machines of a user, with the content of the files that they name.

        Unknown columns of a table are carried; see `describe_carried`.
        """
        entries = read_machines(machines)
        return self.read_files(self.carry_unknown(entries) if is_table(machines) else entries)

    def carry_unknown(self, entries: list[MachineEntry]) -> list[MachineEntry]:
        """Return rows of a table that carry its unknown columns; a table without any known one is none of machines."""
        names = [name for entry in entries[:1] for name in entry.values]
        unknown = {name: name for name in names if self.fields.get(name) is None}
        return [entry.carry(unknown) for entry in entries] if len(unknown) < len(names) else entries

    def describe_carried(self, entries: Sequence[MachineEntry]) -> str:
        """Return the unknown columns that machines carry, with the names that a typo may stand for; "" without any."""
        given = {name: None for entry in entries for name in entry.carried}
        names = [name for name in given if name.strip().lower() not in (*EXTRAS, *OF_FLEETS)]
        near = {name: self.fields.find_near(name, 0.8)[:1] for name in names}
        shown = [f"{name} (did you mean {near[name][0]}?)" if near[name] else name for name in names]
        return f"no field of a machine, carried to the answer unread: {', '.join(shown)}" if shown else ""

    def read_files(self, entries: Iterable[MachineEntry]) -> list[MachineEntry]:
        """Return entries with the content of the files that they name."""
        return [entry._replace(values=self.rules.names.read_files(entry.values)) for entry in entries]

    def field_types(self) -> dict[str, str]:
        """Return the type of every field that may describe a machine: `string` or `double`."""
        columns: dict[str, tuple[str, ...]] = {name: (name,) for name in self.fields.columns}
        fields = self.fields.fields.items()  # a dataset need not have the columns of each
        columns |= {name: field.columns for name, field in fields if columns.keys() >= {*field.columns}}
        kinds = {name: [self.fields.columns[column].kind for column in read] for name, read in columns.items()}
        return {name: "double" if read == [Kind.NUMERICAL] else "string" for name, read in kinds.items()}

    def example_machine(self) -> pd.DataFrame:
        """Return one described machine: the newest measured row without its dates."""
        columns = {name: column for name, column in self.fields.columns.items() if column.kind is not Kind.DATE}
        row = self.reference_data.measured.frame[list(columns)].tail(1).reset_index(drop=True).dropna(axis=1)
        types = {str(name): "float64" if columns[str(name)].kind is Kind.NUMERICAL else "object" for name in row}
        return row.astype(types)


def _is_whole(numbers: np.ndarray) -> bool:
    return bool((np.isnan(numbers) | (np.floor(numbers) == numbers)).all())


def list_levels(names: Names, table: Table, describing: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the columns that are given at every level of description, from the name to all; none without levels.

    Args: `describing` are all columns that may describe a machine. Every level gives the task and the columns of
    the levels before; the last gives all but those that the name of the entity tells.
    """
    if not names.description_levels:
        return ()
    given: list[str] = [table.column_of(Tag.TASK)]
    levels = []
    for columns in names.description_levels:
        given += [name for name in columns if name in describing]
        levels.append(tuple(given))
    everything = [name for name in describing if name not in (*given, *names.named_columns)]
    return (*levels, (*given, *everything))


def build_features(dataset: str, frame: pd.DataFrame, columns: Sequence[Column], features: Sequence[str]) -> Table:
    """Return standard rows, with a fresh index, and the derived features of the named feature modules."""
    table = build_table(dataset, frame, columns)
    for name in features:
        table = plugins.load("features", name).derive(table)
    return table
