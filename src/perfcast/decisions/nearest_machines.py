"""Nearest measured results of described machines, with the columns in which they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perfcast.inference.cells import ASSUMED
from perfcast.inference.champion import Champion
from perfcast.inference.explain import describe_neighbor, find_neighbors, name_machine
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.inference.parse import ParsedMachines, parse_machines
from perfcast.inference.prediction import Answer, Neighbor, name_tasks
from perfcast.inference.suites import Suites
from perfcast.schema.display_names import column_label
from perfcast.schema.table import Kind, Role, Tag, select
from perfcast.utils.errors import UserError

MAX_COUNT = 1000
"""Largest number of measured results that are listed for a task."""


@dataclass(frozen=True)
class Difference:
    """Column in which a measured result differs from the machine; `assumed`: the described value is an imputed one.

    `label` is the name of the column as people write it.
    """

    column: str
    group: str
    unit: str
    described: float | str | None
    measured: float | str | None
    assumed: bool
    label: str = ""


@dataclass(frozen=True)
class SimilarResult:
    """Measured result with its score in `target`, and the most important differences.

    `differing` is the number of all columns that differ. Units: `measured.distance` natural logarithms.
    """

    task: str
    target: str
    unit: str
    measured: Neighbor
    differences: tuple[Difference, ...]
    differing: int


@dataclass(frozen=True)
class NearestResults:
    """Measured results of one machine by task, the nearest first."""

    line: int
    machine: str
    similar: tuple[SimilarResult, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class NearestMachines(Answer):
    """Nearest measured results of several machines."""

    machines: tuple[NearestResults, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per machine and measured result."""
        rows = [
            {
                "line": machine.line,
                "machine": machine.machine,
                "task": each.task,
                "target": each.target,
                "score": each.measured.score,
                "unit": each.unit,
                "distance": each.measured.distance,
                "measured": each.measured.machine,
                "published": each.measured.published,
                "result": each.measured.result,
                "differing": each.differing,
                "differences": "; ".join(f"{d.column}: {d.described} -> {d.measured}" for d in each.differences),
            }
            for machine in self.machines
            for each in machine.similar
        ]
        return pd.DataFrame(rows)


def find_nearest(
    entries: Sequence[MachineEntry],
    suites: Suites,
    *,
    count: int = 10,
    tasks: Sequence[str] = (),
    assume: bool = True,
) -> NearestMachines:
    """Find the measured results of every suite that are nearest to every machine.

    Raises: UserError for the first machine that cannot be used; see `find_nearest_machines`.
    """
    by_machine: dict[tuple[int, str], NearestResults] = {}
    for champion in reversed(suites):
        known = [task for task in tasks if task in champion.tasks]
        if known or not tasks:
            parsed = parse_machines(entries, champion)
            for each in find_nearest_machines(parsed, champion, count=count, tasks=known, assume=assume).machines:
                before = by_machine.get((each.line, each.machine), replace(each, similar=()))
                notes = tuple(dict.fromkeys((*before.notes, *each.notes)))
                joined = replace(before, similar=before.similar + each.similar, notes=notes)
                by_machine[each.line, each.machine] = joined
    return NearestMachines(tuple(by_machine.values()))


def find_nearest_machines(
    machines: ParsedMachines,
    champion: Champion,
    *,
    count: int = 10,
    max_differences: int = 4,
    tasks: Sequence[str] = (),
    assume: bool = True,
) -> NearestMachines:
    """Find the measured results that are nearest to every machine, for the tasks, else for its own, else for all.

    The distance is that of `NeighborIndex`; assumed and missing values weigh nothing. Of each result at most
    `max_differences` differences are kept, those of the heaviest groups first.

    Raises: UserError when the champion has no calibration.
    """
    if champion.neighbor_index is None:
        raise UserError("similar machines need a champion with distances", "this one has no calibration")
    measured = champion.reference_data.measured
    task = measured.column_of(Tag.TASK)
    machines = machines.for_tasks(tasks, champion) if tasks else machines
    predictions = MachinePredictions(impute_machines(machines, champion, assume=assume), champion)
    frame, is_assumed = predictions.completed.frame, predictions.completed.has_origin(ASSUMED)
    units = {column.name: column.unit for column in measured.columns}
    by_line: dict[int, NearestResults] = {}
    for row, neighbors in enumerate(find_neighbors(predictions, champion, count)):
        line, machine = int(frame.index[row]), frame.iloc[row]
        assumed = {name for name, place in predictions.completed.places.items() if is_assumed[row, place]}
        notes = tuple(machines.notes.get(line, ()))
        first = NearestResults(machines.line_of(line), name_machine(machine, measured), (), notes)
        similar = []
        for other, distance in neighbors:
            cells = measured.frame.iloc[other]
            known = (name for name in champion.predictor.targets_ if not pd.isna(cells[name]))
            target = next(known, champion.targets_of[str(cells[task])][0])
            differences = _find_differences(machine, cells, assumed, champion)
            neighbor = describe_neighbor(champion, other, distance, target)
            shown = differences[:max_differences]
            similar.append(SimilarResult(str(cells[task]), target, units[target], neighbor, shown, len(differences)))
        earlier = by_line.get(line, first)
        by_line[line] = replace(earlier, similar=(*earlier.similar, *similar))
    return NearestMachines(name_tasks(tuple(by_line.values()), champion.rules.names.task_titles))


def _find_differences(
    machine: pd.Series, measured: pd.Series, assumed: Container[str], champion: Champion
) -> tuple[Difference, ...]:
    """Return the features that differ, the heaviest first: each has a share of its group's weight.

    Nearly equal numbers weigh less.
    """
    columns = select(champion.reference_data.measured.columns, role=Role.FEATURE)
    weights = champion.calibrated.calibration.weights if champion.calibrated else {}
    sizes = Counter(column.group for column in columns)
    weighted = []
    for column in columns:
        described, other = (
            None if pd.isna(cell) else float(cell) if column.kind is Kind.NUMERICAL else str(cell)
            for cell in (machine[column.name], measured[column.name])
        )
        if described != other:
            name, weight = column.name, weights.get(column.group, 0.0) / sizes[column.group]
            if isinstance(described, float) and isinstance(other, float) and described > 0 and other > 0:
                weight *= min(1.0, abs(float(np.log2(described / other))))
            else:
                weight *= 0.5 if described is None or other is None else 1.0
            about = (name, column.group, column.unit, described, other, name in assumed, column_label(name))
            weighted.append((weight, Difference(*about)))
    return tuple(difference for _, difference in sorted(weighted, key=lambda pair: -pair[0]))
