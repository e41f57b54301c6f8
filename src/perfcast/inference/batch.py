"""Batches of machines in which some cannot be used: each of those has its reason, and the others are answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfcast.inference.alternatives import expand_machines
from perfcast.inference.champion import Champion
from perfcast.inference.impute import find_refusals
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine, ParsedMachines, parse_machine, stack_machines
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import REFUSED, Prediction, Predictions, name_tasks
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Tag
from perfcast.utils.errors import UserError

NONE_ANSWERED, PARTLY_ANSWERED = 2, 3
"""Exit codes of a batch of which no machine, or not every one, could be used."""


@dataclass(frozen=True)
class ParsedBatch:
    """Machines of a batch that can be used, several of one line where it has alternatives; errors of others by line."""

    machines: ParsedMachines
    refusals: Mapping[int, UserError]


def parse_batch(
    entries: Sequence[MachineEntry],
    champion: Champion,
    *,
    strict: bool = False,
    has_task: bool = True,
) -> ParsedBatch:
    """Parse machines, and check them against the limits of the dataset's rules.

    Without `has_task` a machine that names a task is refused.
    Raises: UserError of the first machine that cannot be used, with `strict` or when it is the only one.
    """
    task = champion.reference_data.measured.column_of(Tag.TASK)
    parsed: list[ParsedMachine] = []
    refusals: dict[int, UserError] = {}
    for entry in entries:
        try:
            machine = parse_machine(entry, champion)
            if not has_task and task in machine.cells:
                fact = f"{machine.label} has {machine.typed[task].name}"
                raise UserError("ranked and compared machines must name no task", fact, "leave it out")
            parsed.append(machine)
        except UserError as error:
            if strict or len(entries) == 1:
                raise
            refusals[entry.line] = error
    machines = stack_machines(expand_machines(parsed, champion), champion)
    beyond_limits = find_refusals(machines, champion) if parsed else {}
    if beyond_limits and (strict or len(entries) == 1):
        raise beyond_limits[min(beyond_limits)]
    usable = ~np.isin(machines.cells.index, list(beyond_limits))
    refusals |= {machines.line_of(key): error for key, error in beyond_limits.items()}
    return ParsedBatch(machines.take(usable), refusals)


def predict_batch(
    entries: Sequence[MachineEntry],
    champion: Champion,
    options: PredictOptions,
    measurements: UserMeasurements | None = None,
    *,
    strict: bool = False,
    progress: bool = False,
) -> Predictions:
    """Predict every machine that can be used, see `predict_machines`; the others are refused with their reason.

    Raises: see `parse_batch`.
    """
    batch = parse_batch(entries, champion, strict=strict)
    answer = predict_machines(batch.machines, champion, options, measurements, progress=progress)
    by_line: dict[int, list[Prediction]] = {entry.line: [] for entry in entries}
    for prediction in answer:
        line = batch.machines.line_of(prediction.line)
        by_line[line].append(replace(prediction, line=line))
    for entry in entries:
        if entry.line in batch.refusals:
            message = str(batch.refusals[entry.line])
            by_line[entry.line] = [Prediction(entry.line, entry.label, (), status=REFUSED, message=message)]
    machines = tuple(replace(each, carried=entry.plain_carried) for entry in entries for each in by_line[entry.line])
    return replace(answer, machines=name_tasks(machines, champion.rules.task_titles))


def find_exit_code(answered: int, refused: int) -> int:
    """Return the exit code of a batch: 0 when no machine was refused."""
    if not refused:
        return 0
    return PARTLY_ANSWERED if answered else NONE_ANSWERED
