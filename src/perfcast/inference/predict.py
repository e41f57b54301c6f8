"""Predict described machines: parse them, answer them in batches by every champion, and list what each line gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property

import numpy as np

from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.options import PredictOptions
from perfcast.inference.parse import ParsedMachines
from perfcast.inference.prediction import OK, REFUSED, Prediction, Predictions, Ratio, name_tasks
from perfcast.inference.suite_answers import SuiteAnswers, list_rows
from perfcast.inference.suites import Measured, Suites, parse_suites
from perfcast.schema.table import Role, select
from perfcast.utils.progress import show_progress

BATCH_SIZE = 500
"""Machines that are predicted together, so that many machines fit in memory."""


def predict_machines(
    entries: Sequence[MachineEntry],
    suites: Suites,
    options: PredictOptions,
    measured: Measured = (),
    *,
    strict: bool = False,
    progress: bool = False,
) -> Predictions:
    """Predict every machine that a champion can use for its task, or for all tasks where it names none.

    A machine that no champion can use is refused with the reason, and one that one of several cannot use has a note.
    User measurements correct all predictions. `progress` shows a bar on a terminal.
    Raises: see `parse_suites`.
    """
    sides = parse_suites(entries, suites, strict=strict, asks_capacity=True)
    by_line: dict[int, list[Prediction]] = {entry.line: [] for entry in entries}
    for answers in answer_machines(sides, suites, options, measured, progress=progress):
        for key, prediction in answers.predictions.items():
            by_line[answers.line_of(key)].append(prediction)
    listed = []
    for entry in entries:
        refusals = [side.refusals.get(entry.line) for side in sides]
        made = by_line[entry.line]
        if all(refusals):
            made = [Prediction(entry.line, entry.label, (), status=REFUSED, message=str(refusals[0]))]
        notes = _note_absent(entry, suites, refusals) if not (options.tasks or all(refusals)) else []
        listed += [
            replace(each, line=entry.line, notes=(*each.notes, *notes), carried=entry.plain_carried) for each in made
        ]
    answer = Predictions(
        *suites.identity,
        tuple(listed),
        features=len(select(suites.first.predictor.columns_, role=Role.FEATURE)),
        bases=suites.bases,
        month=suites.name_month(options.when),
    )
    return name_tasks(answer, suites.rules.names.task_titles)


def _note_absent(entry: MachineEntry, suites: Suites, refusals: Sequence[object]) -> list[str]:
    """Return which champions have no answer about a machine; one that names a task asks a single one."""
    if any(name.strip().lower() in ("task", suites.first.task) for name in entry.values):
        return []
    pairs = zip(suites, refusals, strict=True)
    return [f"{each.dataset} has no answer: {refusal}" for each, refusal in pairs if refusal]


def answer_machines(
    sides: Sequence[ParsedMachines],
    suites: Suites,
    options: PredictOptions,
    measured: Measured = (),
    *,
    progress: bool = False,
) -> Iterator[Answers]:
    """Yield the answers about machines in batches. Args: `sides` are the machines as each champion reads them."""
    keys = np.array(sorted({key for side in sides for key in side.keys}), dtype=int)
    with show_progress() if progress else nullcontext() as show:
        for start in range(0, len(keys), BATCH_SIZE):
            if show is not None:
                show("machines", start, len(keys))
            chosen = keys[start : start + BATCH_SIZE]
            batch = [side.take(np.isin(side.keys, chosen)) for side in sides]
            yield Answers(batch, suites, options, measured)


class Answers:
    """Answers of several champions about a batch of machines.

    Args: `machines` are those of every champion, which may have other ones; keys are common.
    """

    def __init__(
        self,
        machines: Sequence[ParsedMachines],
        suites: Suites,
        options: PredictOptions,
        measured: Measured = (),
    ) -> None:
        self._machines, self._suites = machines, suites
        known = [*measured, *[None] * len(suites)]
        self.sides = [
            SuiteAnswers(batch, champion, options, known[place]) if batch.keys else None
            for place, (batch, champion) in enumerate(zip(machines, suites, strict=True))
        ]
        self._unmoved = self._carry_measurements()

    def line_of(self, key: int) -> int:
        """Return the line of a machine."""
        return next(side.line_of(key) for side in self._machines if key in side.machines)

    @cached_property
    def predictions(self) -> dict[int, Prediction]:
        """The prediction of every machine by key: the estimates of all champions, and their ratios."""
        made: dict[int, Prediction] = {}
        for side, machines in zip(self.sides, self._machines, strict=True):
            if side is None:
                continue
            # another champion has ranked the same assumptions
            side.explainer.ranked = {key for key, before in made.items() if before.status == OK}
            notes = {key: (*machines.notes.get(key, ()), *self._unmoved.get(key, ())) for key in machines.keys}
            for each in side.list_predictions(notes):
                named = self._name_suite(each, side)
                made[each.line] = _join_predictions(made[each.line], named) if each.line in made else named
        ratios = self._list_ratios() if len(self._suites) > 1 else {}
        return {key: replace(made[key], ratios=ratios.get(key, ())) for key in sorted(made)}

    def _name_suite(self, prediction: Prediction, side: SuiteAnswers) -> Prediction:
        """Return a prediction of one of several champions whose notes say which has never seen its like."""
        if len(self._suites) == 1:
            return prediction
        dataset = side.champion.dataset
        notes = (f"{dataset}: {note}" if note.startswith("never") else note for note in prediction.notes)
        return replace(prediction, notes=tuple(notes))

    def _list_ratios(self) -> dict[int, tuple[Ratio, ...]]:
        """Return the ratios of the estimates to those that they rest on, by machine.

        What is assumed, and what the base errs, is in both, so a ratio has the width of the estimate.
        """
        base_tasks = self._suites.base_tasks
        bases: dict[tuple[int, str], tuple[float, str]] = {}
        ratios: dict[int, tuple[Ratio, ...]] = {}
        for side in filter(None, self.sides):
            frame = side.estimates[side.estimates["message"] == ""]
            rows = list_rows(frame, ["machine", "task", "target", "median", "low", "high", "level"])
            for machine, task, target, median, *ends, level in rows:
                bases.setdefault((machine, task), (median, target))
                base, base_target = bases.get((machine, base_tasks.get(task, "")), (None, ""))
                if base is not None:
                    low, high = (None if end is None else end / base for end in ends)
                    ratio = Ratio(task, base_tasks[task], base_target, median / base, low, high, level)
                    ratios[machine] = (*ratios.get(machine, ()), ratio)
        return ratios

    def _carry_measurements(self) -> dict[int, tuple[str, ...]]:
        """Carry what user measurements change in the base to the suite that rests on it, and return notes by key.

        An estimate of an entity without results in the base takes over a share, unless that leads away from published
        results. Nothing is carried to a champion with measurements of its own, nor back to the base.
        """
        base, later = (*self.sides, None)[:2]
        if base is None or later is None or base.is_corrected == later.is_corrected:
            return {}
        old, new = base.champion, later.champion
        if later.is_corrected:
            note = f"{old.dataset} is not moved by your results of {new.dataset}: these made no estimate of it better"
            return dict.fromkeys(later.keys.tolist(), (note,))
        tasks = self._suites.base_tasks
        shifts = (base.corrections[0].shift - base.corrections[0].later).tolist()
        shift_of = dict(zip(zip(base.keys.tolist(), base.tasks.tolist(), strict=True), shifts, strict=True))
        outputs = zip(later.keys.tolist(), later.tasks.tolist(), strict=True)
        moved = np.array([shift_of.get((key, tasks.get(task, "")), 0.0) for key, task in outputs])
        results_of_base = later.predicted.table.frame[f"{new.base.name}_known"].to_numpy() if new.base else 0
        before = later.corrections[0].shift
        later.move(np.where(results_of_base > 0, 0.0, new.rules.limits.carried * moved))
        is_moved = later.corrections[0].shift != before
        stays = np.setdiff1d(later.keys[moved != 0], later.keys[is_moved]).tolist()
        note = f"{new.dataset} is not moved by your results of {old.dataset}: published results of the "
        return dict.fromkeys(stays, (f"{note}{new.rules.names.entity_name} count",))


def _join_predictions(first: Prediction, second: Prediction) -> Prediction:
    """Return the predictions of two champions of one machine as one.

    Values are those of the first that answers, but for those that are others in the second.

    The estimates of the second, the later suite, stand first. The basis has the errors and checks of both, and the rest
    of the first.
    """
    if REFUSED in (first.status, second.status):
        return second if first.status == REFUSED else first
    # what each assumes by itself, such as the day, cannot be typed back for both
    others = {each.column: each.value for each in second.values}
    basis = first.basis
    if basis and second.basis:
        basis = replace(basis, errors=second.basis.errors + basis.errors, checks=second.basis.checks + basis.checks)
    return replace(
        first,
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
        estimates=second.estimates + first.estimates,
        derived=second.derived + first.derived,
        unpredicted=second.unpredicted + first.unpredicted,
        values=tuple(each for each in first.values if others.get(each.column, each.value) == each.value),
        basis=basis,
    )
