"""Operations that the server offers on a champion, with plain dictionaries as results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perfcast.describing.files import Entry
from perfcast.errors import UserError
from perfcast.forecasting import Asked, Champion, forecast
from perfcast.forecasting.answer import ESTIMATE
from perfcast.forecasting.completing import MISSING, complete
from perfcast.forecasting.describing import Understood, together, understand
from perfcast.forecasting.explaining import name_of, values_of
from perfcast.forecasting.library import words_of
from perfcast.schema import Role, Tag, select


@dataclass(frozen=True)
class CompleteOptions:
    """Options of a completion: whether unknown values are filled with those of similar machines."""

    assume: bool = True


class PredictionService:
    """Parses, predicts and completes machines with a champion."""

    def __init__(self, champion: Champion) -> None:
        self.champion = champion

    def parse(self, entries: Sequence[Entry], partial: bool, deadline: float) -> list[Understood | UserError]:
        """Parse every machine; with `partial`, an invalid one yields its error.

        Units: `deadline` in seconds of the monotonic clock.
        Raises: UserError for the first invalid machine without `partial`; TimeoutError after the deadline.
        """
        parsed: list[Understood | UserError] = []
        for entry in entries:
            if time.monotonic() > deadline:
                raise TimeoutError
            try:
                parsed.append(understand(entry, self.champion))
            except UserError as error:
                if not partial:
                    raise
                parsed.append(error)
        return parsed

    def run(self, machines: Sequence[Understood], options: Asked | CompleteOptions) -> list[dict[str, Any]]:
        """Predict or complete machines with distinct lines. Raises: UserError when one of them is invalid."""
        if isinstance(options, CompleteOptions):
            return self._complete(machines, options)
        answer = forecast(together(machines, self.champion), self.champion, options)
        by_line = {machine.line: asdict(machine) for machine in answer}
        return [by_line[machine.line] for machine in machines]

    def _complete(self, machines: Sequence[Understood], options: CompleteOptions) -> list[dict[str, Any]]:
        champion = self.champion
        measured = champion.knowledge.measured
        donors = champion.donors if options.assume else None
        completed = complete(together(machines, champion).frame, champion.knowledge, donors)
        lines = completed.frame.index.tolist()
        results = []
        for machine in machines:
            row = lines.index(machine.line)  # a machine has one row per task; the inputs are equal
            unknown = [
                column.name
                for column in measured.columns
                if column.role in (Role.FEATURE, Role.KEY) and completed.origins[column.name].iloc[row] == MISSING
            ]
            results.append(
                {
                    "line": machine.line,
                    "machine": name_of(completed.frame.iloc[row], measured),
                    "values": [asdict(value) for value in values_of(completed, row, measured)],
                    "unknown": unknown,
                    "notes": list(machine.notes),
                }
            )
        return results

    def warm_up(self) -> None:
        """Predict the most measured CPU once, so that the first request does not wait for lazy initialization."""
        entity = self.champion.knowledge.measured.one(Tag.ENTITY)
        for name in self.champion.part_names.keys[:1]:
            try:
                self.run([Understood(1, {entity: name})], Asked())
            except UserError:
                return

    def describe_champion(self) -> dict[str, Any]:
        """Return the fields of `Answer` that describe the champion."""
        champion = self.champion
        return {
            "dataset": champion.dataset,
            "champion": champion.name,
            "schedule": champion.schedule,
            "features": len(select(champion.predictor.columns_, role=Role.FEATURE)),
            "kind": ESTIMATE,
        }

    def describe_vocabulary(self) -> dict[str, list[dict[str, Any]]]:
        """Return fields and columns with meaning, unit, and bounds or an example, as in `VocabularyResponse`."""
        vocabulary, types = self.champion.vocabulary, words_of(self.champion)
        fields = {field.name: field for field in vocabulary.fields.values()}
        return {
            "fields": [
                {
                    "name": name,
                    "meaning": field.meaning,
                    "example": field.example,
                    "number": types[name] == "double",
                    "unit": vocabulary.columns[field.columns[0]].unit if len(field.columns) == 1 else "",
                    "columns": list(field.columns),
                    "aliases": list(field.aliases),
                }
                for name, field in fields.items()
            ],
            "columns": [
                {
                    "name": column.name,
                    "group": column.group,
                    "meaning": column.meaning,
                    "number": types[column.name] == "double",
                    "unit": column.unit,
                    "low": column.low,
                    "high": column.high,
                }
                for column in vocabulary.columns.values()
            ],
        }
