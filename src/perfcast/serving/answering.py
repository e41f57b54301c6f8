"""What a champion is asked over HTTP: forecasts, and descriptions completed without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perfcast.errors import UserError
from perfcast.forecasting import Asked, Champion, forecast
from perfcast.forecasting.answer import ESTIMATE
from perfcast.forecasting.completing import MISSING, complete
from perfcast.forecasting.describing import Understood, together
from perfcast.forecasting.explaining import name_of, values_of
from perfcast.schema import Role, Tag, select


@dataclass(frozen=True)
class Completion:
    """Asks for completed descriptions; whether what nobody said is `assumed`."""

    assume: bool = True


class Answering:
    """Answers machines together, as plain dictionaries in their order."""

    def __init__(self, champion: Champion) -> None:
        self.champion = champion

    def __call__(self, machines: Sequence[Understood], asked: Asked | Completion) -> list[dict[str, Any]]:
        """Answer. Raises: UserError when one of the machines cannot be."""
        if isinstance(asked, Completion):
            return self._completed(machines, asked)
        answer = forecast(together(machines, self.champion), self.champion, asked)
        told = {one.line: asdict(one) for one in answer}
        return [told[machine.line] for machine in machines]

    def _completed(self, machines: Sequence[Understood], asked: Completion) -> list[dict[str, Any]]:
        champion = self.champion
        measured = champion.knowledge.measured
        donors = champion.donors if asked.assume else None
        completed = complete(together(machines, champion).frame, champion.knowledge, donors)
        lines = completed.frame.index.tolist()
        told = []
        for machine in machines:
            row = lines.index(machine.line)  # the first of the machine's rows: one for every task
            unknown = [
                column.name
                for column in measured.columns
                if column.role in (Role.FEATURE, Role.KEY) and completed.origins[column.name].iloc[row] == MISSING
            ]
            told.append(
                {
                    "line": machine.line,
                    "machine": name_of(completed.frame.iloc[row], measured),
                    "values": [asdict(value) for value in values_of(completed, row, measured)],
                    "unknown": unknown,
                    "notes": list(machine.notes),
                }
            )
        return told

    def warm(self) -> None:
        """Forecast the most measured part once, so that nobody waits for what is made at the first forecast."""
        champion = self.champion
        entity = champion.knowledge.measured.column_of(Tag.ENTITY)
        for part in champion.part_names.keys[:1]:
            try:
                self([Understood(1, {entity: part})], Asked())
            except UserError:
                return

    def about(self) -> dict[str, Any]:
        """Return who answers, as in `Answer`."""
        champion = self.champion
        inputs = select(champion.predictor.columns_, role=Role.FEATURE)
        return {
            "dataset": champion.dataset,
            "champion": champion.name,
            "schedule": champion.schedule,
            "features": len(inputs),
            "kind": ESTIMATE,
        }
