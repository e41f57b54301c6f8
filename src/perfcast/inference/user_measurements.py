"""User measurements: a few measured scores correct the predictions of the same machine and of similar ones.

The predictor is not trained again; the scores tell the levels of its errors, as results after training do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_fields import MachineFields, alias_field
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.inference.parse import ParsedMachines, parse_machines
from perfcast.schema.table import Role, Tag
from perfcast.uncertainty.levels import ErrorRows, KnownErrors, outputs_of
from perfcast.utils.errors import UserError

_LARGE_RESIDUAL = np.log(2.0)
"""Residual, in logarithms, from which a note doubts a measured score."""
MAX_MEASUREMENTS = 500
"""Scores that are used together: more would be data to train on."""
_SCORE = "score"


@dataclass(frozen=True)
class UserMeasurements:
    """Measured scores as `known` errors, beyond what results after training tell.

    `outputs` (m,) are those of the scores; `notes` name the scores that look like mistakes.
    """

    known: KnownErrors
    outputs: np.ndarray
    notes: tuple[str, ...] = ()


def read_measurements(
    entries: Sequence[MachineEntry], champion: Champion, machine: Mapping[str, object] | None = None
) -> UserMeasurements:
    """Read measured scores: machines, each with its task and a score under the name of a target or `score`.

    Fields that an entry leaves out are those of `machine`, where there is only one; columns of the dataset that no
    prediction reads, such as a spread, are skipped. Raises: UserError for values that cannot be used.
    """
    later = champion.calibrated.known if champion.calibrated else None
    if later is None:
        fact = f"{champion.name} of {champion.dataset} has no backtest"
        raise UserError("--measured needs a champion with known errors", fact, "train it on more rows")
    if len(entries) > MAX_MEASUREMENTS:
        fact = f"there are {len(entries)}"
        raise UserError(f"user measurements must be at most {MAX_MEASUREMENTS}", fact, "give the newest")
    scores = [_read_scores(entry, champion) for entry in entries]
    alternatives = parse_machines(_machine_entries(entries, champion, machine or {}), champion)
    machines = _choose_alternatives(alternatives, scores, champion)
    predictions = MachinePredictions(impute_machines(machines, champion), champion)
    table = predictions.table
    predicted = pd.DataFrame(predictions.medians, table.frame.index, columns=list(champion.predictor.targets_))
    tasks = table.frame[table.column_of(Tag.TASK)]
    residuals, positions, outputs = [], [], []
    for number, target in enumerate(champion.predictor.targets_):
        expected = predictions.levels[number][0]
        measured = np.array([by_target.get(target, np.nan) for by_target in scores], dtype=float)
        known = np.isfinite(measured) & predicted[target].notna().to_numpy()
        outputs.append(outputs_of(tasks[known], target))
        logs = np.log(predicted.loc[known, target].to_numpy()) + expected[known]
        residuals += (np.log(measured[known]) - logs).tolist()
        positions += np.flatnonzero(known).tolist()
    notes = [
        f"{entries[position].label} is {np.exp(residual):.2f} times its prediction: other compiler options, or a typo?"
        for residual, position in zip(residuals, positions, strict=True)
        if abs(residual) > _LARGE_RESIDUAL
    ]
    named = np.concatenate(outputs)
    measured_rows = ErrorRows.of(replace(table, frame=table.frame.iloc[positions]), named)
    return UserMeasurements(later.for_user(np.array(residuals), measured_rows), named, tuple(notes))


def find_task(values: Mapping[str, object], champion: Champion) -> str | None:
    """Return the task that the fields of a machine name, as typed, None without any."""
    for name, value in values.items():
        field = champion.fields.get(name)
        if field is not None and (champion.task,) == getattr(field, "columns", (field.name,)):
            return str(value)
    return None


def _choose_alternatives(
    machines: ParsedMachines, scores: Sequence[Mapping[str, float]], champion: Champion
) -> ParsedMachines:
    """Return of every measured machine the alternative whose prediction is nearest to the scores."""
    keys = machines.cells.index.tolist()
    lines = np.array([machines.line_of(key) for key in keys], dtype=int)
    if len({*lines}) == len(lines):
        return machines
    medians = MachinePredictions(impute_machines(machines, champion), champion).medians
    targets = champion.predictor.targets_
    measured = np.array([[scores[line].get(target, np.nan) for target in targets] for line in lines])
    with np.errstate(invalid="ignore"):
        gaps = np.nan_to_num(np.abs(np.log(measured / medians)).astype(float)).sum(axis=1)
    order = np.lexsort((gaps, lines))
    return machines.take(np.sort(order[np.searchsorted(lines[order], np.unique(lines))]))


def _machine_entries(
    entries: Sequence[MachineEntry], champion: Champion, machine: Mapping[str, object]
) -> list[MachineEntry]:
    """Return the machines of the measurements, numbered from 0. Raises: UserError when one names no task."""
    task = champion.task
    skipped = {*champion.predictor.targets_, _SCORE, *champion.reference_data.unused_columns}
    machines = []
    for number, (_, label, values, _) in enumerate(entries):
        fields = {name: value for name, value in values.items() if name.strip().lower() not in skipped}
        whole = {**machine, **{name: value for name, value in fields.items() if value not in (None, "")}}
        if task not in champion.fields.cells(whole, label):
            raise UserError("a measured score must name its task", f"{label} names none", "add the column task")
        machines.append(MachineEntry(number, label, whole))
    return machines


def _read_scores(entry: MachineEntry, champion: Champion) -> dict[str, float]:
    """Return the scores of an entry by target."""
    targets = champion.predictor.targets_
    columns = [column for column in champion.reference_data.measured.columns if column.role is Role.TARGET]
    score = alias_field(_SCORE, targets[0], "a measured score", "100")
    fields = MachineFields([column for column in columns if column.name in targets], [score])
    typed = {name: value for name, value in entry.values.items() if name.strip().lower() in (*targets, _SCORE)}
    scores = {name: float(cell) for name, cell in fields.cells(typed, entry.label).items()}
    if not scores:
        remedy = f"add a column named {' or '.join([*targets[:3], _SCORE])}"
        raise UserError("a user measurement must have a score", f"{entry.label} has none", remedy)
    return scores
