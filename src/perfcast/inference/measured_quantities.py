"""Measured values of derived quantities, such as a throughput, as scores of the task that each of them tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perfcast.inference.batch import parse_machines
from perfcast.inference.champion import Champion
from perfcast.inference.derived import DerivedOutput, is_known
from perfcast.inference.draw_predictions import DrawPredictions
from perfcast.inference.impute import impute_draws
from perfcast.inference.machine_fields import read_number
from perfcast.inference.machine_files import MachineEntry
from perfcast.schema.table import Tag
from perfcast.utils.errors import UserError


def solve_quantities(
    entries: Sequence[MachineEntry], champion: Champion, machine: Mapping[str, object], score_names: Sequence[str]
) -> list[MachineEntry]:
    """Return measurements in which each value of a derived quantity is replaced by the score that it tells.

    The formula of the quantity is solved for one task; scores of the others are those that the champion predicts. A
    quantity is the name of a column, or the task of a value under one of `score_names`.
    Raises: UserError for a value that no score explains.
    """
    outputs = {
        _fold(name): output
        for output in champion.rules.derived
        if output.solved
        for name in (output.name, *output.aliases)
    }
    task = champion.reference_data.measured.column_of(Tag.TASK)
    solved, typed_values = list(entries), dict[int, tuple[DerivedOutput, str, float]]()
    for place, entry in enumerate(entries if outputs else ()):
        given = {name: value for name, value in entry.values.items() if value not in (None, "")}
        tasks = [name for name in given if _reads(name, task, champion)]
        scores = [name for name in given if name.strip().lower() in score_names]
        columns = [name for name in given if _fold(name) in outputs]
        named = [name for name in tasks if _fold(str(given[name])) in outputs and len(scores) == 1]
        if not columns and not named:
            continue
        name, source = (columns[0], columns[0]) if columns else (str(given[named[0]]), scores[0])
        typed = [*columns, *scores, *tasks]
        if len(typed) != (1 if columns else 2):
            fact = f"{entry.label} has {', '.join(typed)}"
            raise UserError(f"{name} must be the only result of its line", fact, "give each a line of its own")
        typed_values[place] = outputs[_fold(name)], name, _read_value(str(given[source]), name, entry.label)
        solved[place] = entry._replace(values={key: value for key, value in given.items() if key not in typed})
    if not typed_values:
        return solved
    defaults = {name: value for name, value in machine.items() if not _reads(name, task, champion)}
    described = [
        MachineEntry(place, entries[place].label, {**defaults, **solved[place].values}) for place in typed_values
    ]
    machines = parse_machines(described, champion)
    drawn = DrawPredictions(impute_draws(machines, champion), champion)
    cells = drawn.completed.cells
    lines = np.array([machines.line_of(key) for key in cells.index.tolist()])
    for place, (output, name, value) in typed_values.items():
        rows = np.flatnonzero(lines == place)
        medians = dict(zip(cells[task][rows].tolist(), drawn.medians[rows, 0].tolist(), strict=True))
        known = {column: values[rows[0]] for column, values in cells.items()}
        if missing := [column for column in output.columns if not is_known(known[column])]:
            fact = f"{entries[place].label} has no {', '.join(missing)}"
            raise UserError(f"{name} needs {', '.join(output.columns)}", fact, "add it")
        score = output.solve(value, medians, known)
        if not score:
            others = ", ".join(f"{each} {medians[each]:.4g}" for each in output.tasks if each != output.solved)
            most = output.compute({**medians, output.solved: 0.0}, known)
            fact = f"{entries[place].label} has {value:g}"
            remedy = f"correct it or the load, or give {output.solved}"
            raise UserError(f"{name} must be below {most:.4g} {output.unit}, with {others} as predicted", fact, remedy)
        solved[place] = solved[place]._replace(
            values={**solved[place].values, task: output.solved, score_names[0]: f"{score:.9g}"}
        )
    return solved


def _fold(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _reads(name: str, column: str, champion: Champion) -> bool:
    """Return whether a typed name is that of a column, or of a field of it."""
    field = champion.fields.get(name)
    return field is not None and column in getattr(field, "columns", (field.name,))


def _read_value(text: str, name: str, label: str) -> float:
    try:
        value = read_number(text, "")
    except ValueError:
        value = 0.0
    if value <= 0:
        raise UserError(f"{name} must be a number above 0 without a unit", f"{label} has {text[:60]!r}", "correct it")
    return value
