"""Champion of a dataset, with what predictions of described machines need: fields, rules, neighbors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.inference.cells import Cells
from perfcast.inference.champion_archive import WITHOUT_SCORES, LeftOutScores, unpack_champion
from perfcast.inference.donors import HotDeck, JointDeck
from perfcast.inference.machine_fields import MachineFields, alias_field
from perfcast.inference.machine_files import EXTRAS, MachineEntry, Machines, is_table, read_machines
from perfcast.inference.measured_index import NeighborIndex, PublishedIndex
from perfcast.inference.name_lookup import EntityNames, TaskNames
from perfcast.inference.reference_data import ReferenceData, describing_columns
from perfcast.inference.rules import DescriptionRules, find_rules
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.schema_version import SCHEMA_KEY, SCHEMA_VERSION, check_schema_version
from perfcast.schema.table import Column, Kind, Table, Tag, build_table
from perfcast.uncertainty.conformal import UncertaintyModel
from perfcast.utils.errors import UserError, explain_missing_module
from perfcast.utils.io import read_json, write_json
from perfcast.utils.result_digests import record_digests, verify_folder

_REFERENCE_DATA = "reference_data"


@dataclass(frozen=True)
class Champion:
    """Best predictor of a dataset, fitted on every row, with its reference data and calibration.

    `calibrated` and `neighbor_index` are None where too few rows were there for a calibration. `left_out` replaces the
    published scores in a champion that was exported without them.
    """

    dataset: str
    name: str
    preset: str
    features: tuple[str, ...]
    predictor: Predictor
    reference_data: ReferenceData
    calibrated: UncertaintyModel | None = None
    neighbor_index: NeighborIndex | None = None
    left_out: LeftOutScores | None = None

    def __repr__(self) -> str:
        return f"<Champion {self.name} of {self.dataset}: {len(self.reference_data.measured.frame)} measured results>"

    @property
    def describes_machines(self) -> bool:
        """True where a description of a machine is the input; a window of seconds is none."""
        return not self.reference_data.measured.select(kind=Kind.SEQUENCE)

    def require_described(self) -> Self:
        """Return the champion. Raises: UserError when it does not predict described machines."""
        if self.describes_machines:
            return self
        fact = f"that of {self.dataset!r} predicts from the last seconds of a running one"
        remedy = "use perfcast watch, with a champion of host_interference"
        raise UserError("the champion must predict described machines", fact, remedy)

    @cached_property
    def rules(self) -> DescriptionRules:
        """The imputation rules of the dataset."""
        return find_rules(self.dataset)

    @property
    def named_field(self) -> str:
        """The field of the name in a short text of a machine."""
        return self.rules.named_field or self.reference_data.measured.column_of(Tag.ENTITY)

    @cached_property
    def fields(self) -> MachineFields:
        """The fields that may describe a machine."""
        columns = describing_columns(self.reference_data.measured, self.features)
        frame = self.reference_data.measured.frame
        counts = [column.name for column in columns if column.kind is Kind.NUMERICAL and not column.unit]
        whole = [name for name in counts if (frame[name].dropna() % 1 == 0).all()]
        task = self.reference_data.measured.column_of(Tag.TASK)
        named = alias_field("task", task, "the predicted quantity", next(iter(self.tasks), ""))
        is_free = "task" not in (column.name for column in columns)
        return MachineFields(columns, (*self.rules.fields, *([named] if is_free else [])), whole)

    @cached_property
    def entity_names(self) -> EntityNames:
        """The names of the entities, the most measured first."""
        measured = self.reference_data.measured
        counts = measured.frame[measured.column_of(Tag.ENTITY)].astype("str").value_counts()
        facts = self.reference_data.entity_facts
        groups = (pair for name in self.rules.group_columns for pair in facts[name].dropna().items())
        return EntityNames(self.rules, [*counts.index, *facts.index], ((str(group), str(key)) for key, group in groups))

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks with predictions, in the order of the answers."""
        measured = self.reference_data.measured
        return sorted(measured.frame[measured.column_of(Tag.TASK)].dropna().astype(str).unique())

    @cached_property
    def task_names(self) -> TaskNames:
        """The names of the tasks, those of the publisher included."""
        return TaskNames(self.tasks, self.rules.alias_tasks(self.tasks))

    @cached_property
    def designs(self) -> list[str]:
        """The measured designs of entities, the most measured first; see `DescriptionRules.design_column`."""
        column = self.rules.design_column
        return [] if column is None else list(self.reference_data.measured.frame[column].value_counts().index)

    @cached_property
    def measured_kinds(self) -> frozenset[str]:
        """The kinds of machine that have measured results, see `DescriptionRules.list_kinds`."""
        names = list(self.rules.kind_columns)
        rows = self.reference_data.measured.frame[names].astype(object).drop_duplicates().itertuples(index=False)
        return frozenset(kind for row in rows for kind in self.rules.list_kinds(dict(zip(names, row, strict=True))))

    def find_deductions(self, cells: Mapping[str, Any]) -> np.ndarray:
        """Return what is taken off the logarithms of predictions, (n,) or (1,), see `DescriptionRules`."""
        return self.rules.find_deductions(cells, self.measured_kinds)

    def list_unmeasured(self, cells: Mapping[str, Any]) -> list[str]:
        """Return a note that names the kinds of a machine of which there is no measured result, none without such."""
        kinds = [kind for kind in self.rules.list_kinds(cells) if kind not in self.measured_kinds]
        return [f"never measured: {', '.join(kinds)}"] if kinds else []

    @cached_property
    def hot_deck(self) -> HotDeck:
        """The measured results that donate usual values."""
        return HotDeck(self.reference_data.measured)

    @cached_property
    def description_levels(self) -> tuple[tuple[str, ...], ...]:
        """The columns that are given at every level of description."""
        return self.rules.list_levels(self.reference_data.measured, list(self.fields.columns))

    @cached_property
    def joint_deck(self) -> JointDeck | None:
        """The measured results that donate whole set-ups, None without rules of them."""
        rules = self.rules
        return JointDeck(self.reference_data.measured, rules.joint, rules.naming_columns) if rules.joint else None

    @cached_property
    def published_index(self) -> PublishedIndex:
        """The index of measured results by machine."""
        return PublishedIndex(self.reference_data, self.rules.setup_columns)

    @cached_property
    def typical_rows(self) -> dict[str, int]:
        """The measured row of every task whose first target is the median of its last year."""
        if self.left_out is not None:
            return dict(self.left_out.typical_rows)
        return self.reference_data.find_typical_rows(self.predictor.targets_)

    def targets_of(self, task: str) -> list[str]:
        """Return the targets that a task was measured in."""
        if self.left_out is not None:
            return list(self.left_out.targets[task])
        measured = self.reference_data.measured
        rows = measured.frame[measured.frame[measured.column_of(Tag.TASK)].astype(str) == task]
        return [name for name in self.predictor.targets_ if rows[name].notna().any()]

    def derive_features(self, cells: Cells) -> Table:
        """Return machines with every standard column, and the derived features that the predictor reads; no labels."""
        frame = Cells(cells, np.arange(len(cells.index))).to_frame(coded=True)
        table = Table(self.dataset, frame, self.reference_data.measured.columns)
        for module in self._modules:
            table = module.derive(table)
        return table

    @cached_property
    def _modules(self) -> list[ModuleType]:
        """The feature modules that the predictor reads."""
        loaded = [plugins.load("features", name) for name in self.features]
        return [module for module in loaded if not getattr(module, "LABELS_ONLY", False)]

    def predict_logs(self, cells: Cells) -> np.ndarray:
        """Return the predictor's answers for machines with every standard column, in natural logarithms."""
        predicted = self.predictor.predict(self.derive_features(cells).frame)
        return np.asarray(np.log(predicted.to_numpy(dtype=float)))

    def read_entries(self, machines: Machines) -> list[MachineEntry]:
        """Return the entries of machines of a user, with the content of the files that they name.

        Unknown columns of a table are carried; see `describe_carried`.
        """
        entries = read_machines(machines)
        if is_table(machines):
            unknown = {name: name for name in entries[0].values if self.fields.get(name) is None}
            if len(unknown) < len(entries[0].values):  # a table without any known column is none of machines
                entries = [entry.carry(unknown) for entry in entries]
        return self.read_files(entries)

    def describe_carried(self, entries: Sequence[MachineEntry]) -> str:
        """Return the unknown columns that machines carry, with the names that a typo may stand for; "" without any."""
        names = {name: None for entry in entries for name in entry.carried if name not in EXTRAS}
        near = {name: self.fields.find_near(name, 0.8)[:1] for name in names}
        shown = [f"{name} (did you mean {near[name][0]}?)" if near[name] else name for name in names]
        return f"no field of a machine, carried to the answer unread: {', '.join(shown)}" if shown else ""

    def read_files(self, entries: Iterable[MachineEntry]) -> list[MachineEntry]:
        """Return entries with the content of the files that they name."""
        return [entry._replace(values=self.rules.read_files(entry.values)) for entry in entries]

    def find_entity(self, text: str) -> str:
        """Return the entity of a typed name; an unknown name stays as it is."""
        entity = self.reference_data.measured.column_of(Tag.ENTITY)
        name = str(self.fields.cells({entity: text}, "the name").get(entity, text))
        return self.entity_names.find(name).key or name

    def field_types(self) -> dict[str, str]:
        """Return the type of every field that may describe a machine: `string` or `double`."""
        columns: dict[str, tuple[str, ...]] = {name: (name,) for name in self.fields.columns}
        columns |= {name: field.columns for name, field in self.fields.fields.items()}
        kinds = {name: [self.fields.columns[column].kind for column in read] for name, read in columns.items()}
        return {name: "double" if read == [Kind.NUMERICAL] else "string" for name, read in kinds.items()}

    def example_machine(self) -> pd.DataFrame:
        """Return one described machine: the newest measured row without its dates."""
        columns = {name: column for name, column in self.fields.columns.items() if column.kind is not Kind.DATE}
        row = self.reference_data.measured.frame[list(columns)].tail(1).reset_index(drop=True).dropna(axis=1)
        types = {str(name): "float64" if columns[str(name)].kind is Kind.NUMERICAL else "object" for name in row}
        return row.astype(types)


def build_features(dataset: str, frame: pd.DataFrame, columns: Sequence[Column], features: Sequence[str]) -> Table:
    """Return standard rows, with a fresh index, and the derived features of the named feature modules."""
    table = build_table(dataset, frame, columns)
    for name in features:
        table = plugins.load("features", name).derive(table)
    return table


def load_champion(folder: Path | str, dataset: str | None = None) -> Champion:
    """Read the folder that `perfcast pipeline champion` wrote, or the file that `perfcast champion export` wrote.

    Raises: UserError when there is none, it is of another dataset or schema version, a file in it has changed, or it is
    no fitted model.
    """
    given = Path(folder)
    with unpack_champion(given) if given.is_file() else nullcontext(given) as unpacked:
        if not (unpacked / "about.json").is_file():
            missing = "a champion" if dataset is None else f"a champion of {dataset!r}"
            raise UserError(
                f"there must be {missing}",
                f"there is no {given / 'about.json'}",
                "run the experiment that trains it, or name its folder with --results",
            )
        try:
            if unpacked is given:  # members of a file are verified when they are unpacked
                verify_folder(given)
            return _load(unpacked, dataset)
        except UserError:
            raise
        except Exception as error:  # any error that a library raises for bytes that it did not write
            if isinstance(error, ImportError) and (absent := explain_missing_module(error, "this model")):
                raise absent from None
            fact = f"{given} cannot be read ({type(error).__name__})"
            raise UserError("a champion must be as it was saved", fact, "make it again, or fetch it again") from error


def _load(folder: Path, dataset: str | None) -> Champion:
    about = read_json(folder / "about.json")
    check_schema_version(about, folder / "about.json")
    if dataset is not None and about["dataset"] != dataset:
        raise UserError(f"the champion must be one of {dataset!r}", f"it is of {about['dataset']!r}")
    reference_data = ReferenceData.load(folder / _REFERENCE_DATA)
    intervals = folder / "intervals"
    without = about.get(WITHOUT_SCORES)
    calibrated = UncertaintyModel.load(intervals) if intervals.is_dir() else None
    return Champion(
        about["dataset"],
        about["predictor"],
        about["preset"],
        tuple(about["features"]),
        load_predictor(folder / "model"),
        reference_data,
        calibrated,
        NeighborIndex.load(folder / _REFERENCE_DATA, reference_data.measured, calibrated) if calibrated else None,
        LeftOutScores(**{**without, "sources": tuple(without["sources"])}) if without else None,
    )


def save_champion(
    folder: Path,
    predictor: Predictor,
    calibrated: UncertaintyModel | None,
    *,
    standard: Table,
    table: Table,
    raw: Mapping[str, Path],
    about: Mapping[str, Any],
) -> None:
    """Write the folder that `load_champion` reads.

    Args: `standard` is the dataset's standard table, `table` the one with features, `raw` the folders of its ingested
    sources, `about` its description, with the names of the feature modules under `features`.
    """
    predictor.save(folder / "model")
    reference_data = ReferenceData.gather(standard, raw, about["features"])
    (folder / _REFERENCE_DATA).mkdir(parents=True, exist_ok=True)
    reference_data.save(folder / _REFERENCE_DATA)
    if calibrated is not None:
        calibrated.save(folder / "intervals")
        row = table.column_of(Tag.ROW)
        ordered = table.frame.set_index(row).loc[reference_data.measured.frame[row]].reset_index()
        encoded = calibrated.in_domain.encode(ordered).astype(np.float32)
        NeighborIndex(reference_data.measured, encoded, calibrated).save(folder / _REFERENCE_DATA)
    write_json(folder / "about.json", {SCHEMA_KEY: SCHEMA_VERSION, **about})
    record_digests(folder)
