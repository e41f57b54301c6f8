"""What-if grid: predictions of a machine with some fields varied, in all combinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import zip_longest
from typing import Any

import pandas as pd

from perfcast.decisions.criteria import Output
from perfcast.decisions.variants import VariedField, make_variants, read_varied_fields
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import answer_machines
from perfcast.inference.prediction import (
    ESTIMATE,
    ChampionAnswer,
    DerivedValue,
    Estimate,
    join_names,
    name_tasks,
)
from perfcast.inference.suites import Measured, Suites
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.utils.errors import UserError


@dataclass(frozen=True)
class Combination:
    """One combination: values by varied field, and its estimates by task, or the reason why it is impossible.

    `numbers` has the values of numerical fields in the units of their columns. `base_entity` names the entity whose
    facts a hypothetical one has, "" for a real one. `derived` has what follows from the estimates of several tasks.
    """

    values: dict[str, str]
    numbers: dict[str, float]
    estimates: tuple[Estimate, ...] = ()
    violation: str = ""
    base_entity: str = ""
    derived: tuple[DerivedValue, ...] = ()


@dataclass(frozen=True, repr=False)
class Grid(ChampionAnswer):
    """All combinations, the last field's values changing fastest. `units`: by varied numerical field."""

    machine: str
    level: float
    units: dict[str, str]
    combinations: tuple[Combination, ...]
    notes: tuple[str, ...]
    kind: str = ESTIMATE

    @property
    def names(self) -> list[str]:
        """The varied fields."""
        return list(self.combinations[0].values)

    @property
    def possible(self) -> list[Combination]:
        """The combinations that break no limit."""
        return [combination for combination in self.combinations if not combination.violation]

    @property
    def outputs(self) -> dict[Output, str]:
        """The predicted outputs and their titles: the task, with the target where the task has several."""
        outputs = dict.fromkeys(Output.of(estimate) for each in self.possible for estimate in each.estimates)
        tasks = [output.task for output in outputs]
        return {
            output: output.task if tasks.count(output.task) == 1 else f"{output.task} {output.target}"
            for output in outputs
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per combination and task or derived quantity; one for an impossible combination."""
        rows: list[dict[str, Any]] = []
        for each in self.combinations:
            row = {**each.values, "base_entity": each.base_entity, "violation": each.violation}
            cells = [*(part.cells() for part in each.estimates), *(part.cells() for part in each.derived)]
            rows += [row | part for part in cells or [{}]]
        return pd.DataFrame(rows)


def predict_grids(
    entry: MachineEntry,
    vary: Sequence[str],
    suites: Suites,
    tasks: Sequence[str] = (),
    options: PredictOptions | None = None,
    *,
    measured: Measured = (),
    progress: bool = False,
) -> Grid:
    """Predict every combination of the fields that texts vary by every suite that has one of the tasks.

    Each suite assumes what its own results have. See `predict_grid`.
    """
    grids = [
        predict_grid(
            entry, read_varied_fields(vary, each.fields), each, tasks, options, measurements=known, progress=progress
        )
        for each, known in zip_longest(suites, measured)
        if not tasks or not {*tasks}.isdisjoint(each.tasks)
    ]
    return reduce(_join_grids, grids)


def _join_grids(first: Grid, second: Grid) -> Grid:
    """Return a grid with the estimates of both, the later suite first; what is impossible in either is impossible."""
    others = {tuple(each.values.items()): each for each in second.combinations}
    combinations = []
    for each in first.combinations:
        other = others.get(tuple(each.values.items()), Combination({}, {}))
        violation, derived = each.violation or other.violation, other.derived + each.derived
        estimates = () if violation else other.estimates + each.estimates
        combinations.append(replace(each, estimates=estimates, derived=derived, violation=violation))
    names: dict[str, Any] = {
        name: join_names(getattr(second, name), getattr(first, name)) for name in ChampionAnswer.__annotations__
    }
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    return replace(first, combinations=tuple(combinations), notes=notes, **names)


def predict_grid(
    entry: MachineEntry,
    varied: Sequence[VariedField],
    champion: Champion,
    tasks: Sequence[str] = (),
    options: PredictOptions | None = None,
    *,
    measurements: UserMeasurements | None = None,
    progress: bool = False,
) -> Grid:
    """Predict every combination; see `make_variants` for what stays constant.

    User measurements correct every prediction.
    Raises: UserError when the machine cannot be used, or every combination is impossible.
    """
    if not varied:
        raise UserError("something must be varied", "there is no --vary", "such as --vary cores=64..192:16")
    options = replace(options or PredictOptions(), tasks=tuple(tasks), neighbors=0, explain=False)
    made = make_variants(entry, varied, champion)
    batches = answer_machines([made.machines], Suites(champion), options, [measurements], progress=progress)
    predictions = {key: prediction for answers in batches for key, prediction in answers.predictions.items()}
    if not predictions:
        raise UserError("at least one combination must be possible", f"none is: {next(iter(made.reasons.values()))}")
    combinations = []
    for number, points in enumerate(made.combinations):
        pairs, prediction = list(zip(made.varied, points, strict=True)), predictions.get(number)
        numbered = ((field.name, point) for field, point in pairs if field.unit is not None)
        combinations.append(
            Combination(
                values={field.name: point.text for field, point in pairs},
                numbers={name: float(next(iter(point.cells.values()))) for name, point in numbered},
                estimates=prediction.estimates if prediction else (),
                violation=made.reasons.get(number, ""),
                base_entity=made.base_entities.get(number, ""),
                derived=prediction.derived if prediction else (),
            )
        )
    measurement_notes = measurements.notes if measurements else ()
    return Grid(
        *champion.identity,
        month=champion.name_month(options.when),
        machine=entry.label if entry.values else "",
        level=options.level,
        units={field.name: field.unit for field in made.varied if field.unit is not None},
        combinations=name_tasks(tuple(combinations), champion.rules.names.task_titles),
        notes=(*made.notes, *measurement_notes, *champion.notices),
    )
