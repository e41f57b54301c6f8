"""What if: forecasts of a machine with some of its characteristics varied, all combinations of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from perfcast.choosing.ranking import PLAIN
from perfcast.choosing.variants import Variant, vary
from perfcast.choosing.varying import Varied
from perfcast.describing.files import Entry
from perfcast.errors import UserError
from perfcast.forecasting import Asked, Champion, Estimate
from perfcast.forecasting.batch import forecast_in_batches
from perfcast.forecasting.own_measurements import OwnMeasurements


@dataclass(frozen=True)
class Combination:
    """One combination: the values by varied name, and its estimates by task, or why it cannot be.

    `numbers` has the values of names of numbers in their columns' units. `like` names the part that it is like and is
    not, "" otherwise.
    """

    values: dict[str, str]
    numbers: dict[str, float]
    estimates: tuple[Estimate, ...] = ()
    refused: str = ""
    like: str = ""


@dataclass(frozen=True)
class Sweep:
    """All combinations, the last name's values changing fastest. `units`: by varied name of numbers."""

    dataset: str
    champion: str
    schedule: str
    machine: str
    level: float
    units: dict[str, str]
    combinations: tuple[Combination, ...]
    notes: tuple[str, ...]
    kind: str = "estimates, not official results"

    @property
    def names(self) -> list[str]:
        """What is varied."""
        return list(self.combinations[0].values)

    @property
    def possible(self) -> list[Combination]:
        """The combinations that can be."""
        return [one for one in self.combinations if not one.refused]

    @property
    def questions(self) -> dict[tuple[str, str], str]:
        """What is forecast, task and target, as it is shown: by its task where that has one target."""
        found = dict.fromkeys((one.task, one.target) for each in self.possible for one in each.estimates)
        tasks = [task for task, _ in found]
        return {(task, target): task if tasks.count(task) == 1 else f"{task} {target}" for task, target in found}

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, ready for JSON."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per combination and task; one for a combination that cannot be."""
        rows = []
        for one in self.combinations:
            for estimate in one.estimates or (None,):
                said: dict[str, Any] = {**one.values, "like": one.like, "refused": one.refused}
                if estimate is not None:
                    said |= {"task": estimate.task, "target": estimate.target, "estimate": estimate.median}
                    said |= {"low": estimate.low, "high": estimate.high, "unit": estimate.unit}
                    said |= {"support": estimate.support, "unlike": estimate.unlike}
                rows.append(said)
        return pd.DataFrame(rows)


def sweep(
    entry: Entry,
    varied: Sequence[Varied],
    champion: Champion,
    tasks: Sequence[str] = (),
    asked: Asked = PLAIN,
    *,
    own: OwnMeasurements | None = None,
    progress: bool = False,
) -> Sweep:
    """Forecast every combination; see `vary` for what is held, and `forecast` for measurements of one's `own`.

    Raises: UserError when the machine cannot be used, or no combination can be.
    """
    if not varied:
        raise UserError("something must be varied", "there is no --vary", "such as --vary cores=64..192:16")
    found = vary(entry, varied, champion, tasks, assume=asked.assume)
    if found.described.frame.empty:
        raise UserError("one combination at least must be possible", f"none is: {found.variants[0].refused}")
    answer = forecast_in_batches(found.described, champion, asked, own, progress=progress)
    by_line = {machine.line: machine.estimates for machine in answer}
    made = tuple(
        _combination(one, [estimate for line in one.lines for estimate in by_line[line]], varied)
        for one in found.variants
    )
    return Sweep(
        dataset=champion.dataset,
        champion=champion.name,
        schedule=champion.schedule,
        machine=entry[1] if entry[2] else "",
        level=asked.level,
        units={one.name: one.unit for one in varied if one.unit is not None},
        combinations=made,
        notes=(*found.notes, *(own.notes if own else ()), *unchanged(made, [one.name for one in varied])),
    )


def _combination(one: Variant, estimates: Sequence[Estimate], varied: Sequence[Varied]) -> Combination:
    pairs = list(zip(varied, one.points, strict=True))
    numbers = {name.name: _number(point.cells) for name, point in pairs if name.unit is not None}
    values = {name.name: point.text for name, point in pairs}
    return Combination(values, numbers, tuple(estimates), one.refused, one.like)


def _number(cells: Any) -> float:
    (cell,) = cells.values()
    return float(cell)


def unchanged(made: Sequence[Combination], names: Sequence[str]) -> list[str]:
    """Tell of names whose values change no estimate at all: the machine's other limits, or the model, hide them."""
    notes = []
    for name in names:
        groups: dict[tuple[str, ...], set[tuple[float, ...]]] = {}
        counts: dict[tuple[str, ...], int] = {}
        for one in made:
            if not one.refused:
                key = tuple(value for other, value in one.values.items() if other != name)
                groups.setdefault(key, set()).add(tuple(round(estimate.median, 9) for estimate in one.estimates))
                counts[key] = counts.get(key, 0) + 1
        if max(counts.values()) > 1 and all(len(found) == 1 for found in groups.values()):
            notes.append(
                f"{name} changes no estimate here: something else of the machine limits it, or nothing reads it"
            )
    return notes
