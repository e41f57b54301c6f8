"""Operations that the server offers on a champion, with plain dictionaries as results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perfcast.inference.alternatives import expand_machines
from perfcast.inference.champion import Champion
from perfcast.inference.draw_predictions import complete_machines
from perfcast.inference.explain import list_values, name_machine
from perfcast.inference.impute import MISSING
from perfcast.inference.machine_fields import name_group
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine, parse_machine, stack_machines
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import ESTIMATE, OK, REFUSED, Prediction
from perfcast.schema.table import Role, Tag, select
from perfcast.utils.errors import UserError


@dataclass(frozen=True)
class ImputeOptions:
    """Options of an imputation: whether unknown values are filled with those of similar machines."""

    assume: bool = True


def describe_refusal(entry: MachineEntry, error: UserError, options: PredictOptions | ImputeOptions) -> dict[str, Any]:
    """Return the result of a machine that cannot be used."""
    refused = asdict(Prediction(entry.line, entry.label, (), status=REFUSED, message=str(error)))
    if isinstance(options, ImputeOptions):
        return {**refused, "unknown": []}
    return refused


class PredictionService:
    """Operations on machines: parsing, prediction and imputation with a champion."""

    def __init__(self, champion: Champion) -> None:
        self.champion = champion

    def parse(
        self, entries: Sequence[MachineEntry], strict: bool, deadline: float
    ) -> list[tuple[MachineEntry, ParsedMachine | UserError]]:
        """Parse every machine, see `expand_machines`; an invalid one yields its error.

        Units: `deadline` in seconds of the monotonic clock.
        Raises: UserError for the first invalid machine with `strict`; TimeoutError after the deadline.
        """
        parsed: list[tuple[MachineEntry, ParsedMachine | UserError]] = []
        for entry in entries:
            if time.monotonic() > deadline:
                raise TimeoutError
            try:
                machine = parse_machine(entry, self.champion)
                parsed += [(entry, each) for each in expand_machines([machine], self.champion)]
            except UserError as error:
                if strict:
                    raise
                parsed.append((entry, error))
        return parsed

    def run(self, machines: Sequence[ParsedMachine], options: PredictOptions | ImputeOptions) -> list[dict[str, Any]]:
        """Predict or impute machines with distinct lines. Raises: UserError when one of them is invalid."""
        if isinstance(options, ImputeOptions):
            return self._impute(machines, options)
        answer = predict_machines(stack_machines(machines, self.champion), self.champion, options)
        by_line = {machine.line: asdict(machine) for machine in answer}
        return [by_line[machine.line] for machine in machines]

    def _impute(self, machines: Sequence[ParsedMachine], options: ImputeOptions) -> list[dict[str, Any]]:
        champion = self.champion
        measured = champion.reference_data.measured
        completed = complete_machines(stack_machines(machines, champion), champion, assume=options.assume)
        lines, names = completed.cells.index.tolist(), list(completed.cells)
        missing = completed.has_origin(MISSING)
        results = []
        for machine in machines:
            row = lines.index(machine.line)  # a machine has one row per task; the inputs are equal
            unknown = [
                column.name
                for column in measured.columns
                if column.role in (Role.FEATURE, Role.KEY) and missing[row, names.index(column.name)]
            ]
            results.append(
                {
                    "line": machine.line,
                    "machine": name_machine({name: values[row] for name, values in completed.cells.items()}, measured),
                    "values": [asdict(value) for value in list_values(completed, row, measured)],
                    "unknown": unknown,
                    "notes": list(machine.notes),
                    "status": OK,
                    "message": "",
                }
            )
        return results

    def warm_up(self) -> None:
        """Predict the most measured CPU once, so that the first request does not wait for lazy initialization."""
        entity = self.champion.reference_data.measured.column_of(Tag.ENTITY)
        for name in self.champion.cpu_names.keys[:1]:
            try:
                self.run([ParsedMachine(1, {entity: name})], PredictOptions())
            except UserError:
                return

    def describe_champion(self) -> dict[str, Any]:
        """Return the fields of a response that describe the champion."""
        champion = self.champion
        return {
            "dataset": champion.dataset,
            "champion": champion.name,
            "preset": champion.preset,
            "features": len(select(champion.predictor.columns_, role=Role.FEATURE)),
            "kind": ESTIMATE,
        }

    def describe_fields(self) -> dict[str, list[dict[str, Any]]]:
        """Return fields and columns with meaning, unit, and bounds or an example, as in `FieldsResponse`."""
        machine_fields, types = self.champion.fields, self.champion.field_types()
        capacities = {**self.champion.rules.capacities, **self.champion.rules.largest_values}
        fields = {field.name: field for field in machine_fields.fields.values()}
        return {
            "fields": [
                {
                    "name": name,
                    "meaning": field.meaning,
                    "example": field.example,
                    "number": types[name] == "double",
                    "unit": machine_fields.columns[field.columns[0]].unit if len(field.columns) == 1 else "",
                    "columns": list(field.columns),
                    "capacity": capacities.get(field.columns[0]) if len(field.columns) == 1 else None,
                    "aliases": list(field.aliases),
                }
                for name, field in fields.items()
            ],
            "columns": [
                {
                    "name": column.name,
                    "group": name_group(column),
                    "meaning": column.meaning,
                    "number": types[column.name] == "double",
                    "unit": column.unit,
                    "low": column.low,
                    "high": column.high,
                    "capacity": capacities.get(column.name),
                }
                for column in machine_fields.columns.values()
            ],
        }
