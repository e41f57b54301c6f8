"""Predict machines with a champion and with one that rests on its estimates, from the same assumed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from perfcast.inference.champion import Champion
from perfcast.inference.champion_pair import BridgedPair, Measured, list_champions, parse_pair
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachines
from perfcast.inference.predict import MachineAnswers, PredictOptions, batches
from perfcast.inference.prediction import OK, REFUSED, Estimate, Prediction, Predictions, Ratio, name_tasks
from perfcast.schema.table import Role, select


class JointAnswers:
    """Answers of one or both champions about machines.

    `sides` has None for a champion that has no machine.
    """

    def __init__(
        self,
        machines: Sequence[ParsedMachines],
        champions: Champion | BridgedPair,
        options: PredictOptions,
        measurements: Measured = (None, None),
    ) -> None:
        self._machines, self._champions = machines, champions
        self.sides: list[MachineAnswers | None] = []
        for batch, champion, known in zip(machines, list_champions(champions), measurements, strict=False):
            side = None
            if batch.keys:
                imputed = impute_machines(batch, champion, options.when, assume=options.assume)
                side = MachineAnswers(imputed, champion, options, known)
            self.sides.append(side)
        self._unmoved = self._carry()

    def _carry(self) -> dict[int, tuple[str, ...]]:
        """Carry what user measurements change in the base to the bridged champion, and return notes by key.

        An estimate of an entity without results in the base takes over a share, unless that leads away from published
        results. Nothing is carried to a champion with measurements of its own, nor back to the base.
        """
        base, bridged = (*self.sides, None)[:2]
        if base is None or bridged is None or base.is_corrected == bridged.is_corrected:
            return {}
        keys, (old, new) = bridged.predicted.completed.cells.index, (base.champion, bridged.champion)
        if bridged.is_corrected:
            note = f"{old.dataset} is not moved by your results of {new.dataset}: these made no estimate of it better"
            return dict.fromkeys(keys.tolist(), (note,))
        bridge, correction = BridgedPair(old, new).bridge, bridged.corrections[0]
        moves = dict(zip(_list_outputs(base), base.corrections[0].shift - base.corrections[0].later, strict=True))
        moved = np.array([moves.get((key, bridge.tasks.get(task, "")), 0.0) for key, task in _list_outputs(bridged)])
        known = bridged.predicted.table.frame[bridge.columns[-1].name].to_numpy()
        added = np.where(known > 0, 0.0, new.rules.limits.carried * moved)
        added[bridged.explainer.moves_away(bridged.predicted.medians[:, 0], added, new.predictor.targets_[0])] = 0.0
        bridged.corrections[0] = correction._replace(shift=correction.shift + added)
        bridged.is_corrected = True
        stays = np.setdiff1d(keys[moved != 0], keys[added != 0]).tolist()
        note = f"{new.dataset} is not moved by your results of {old.dataset}: published results of the "
        return dict.fromkeys(stays, (f"{note}{new.rules.names.entity_name} count",))

    def list_predictions(self) -> dict[int, Prediction]:
        """Return the prediction of every machine by key: the estimates of all champions, and the ratios of a pair."""
        by_key: dict[int, Prediction] = {}
        for side, machines, champion in zip(self.sides, self._machines, list_champions(self._champions), strict=True):
            notes = {key: (*machines.notes.get(key, ()), *self._unmoved.get(key, ())) for key in machines.keys}
            which = f"{champion.dataset}: " if len(self.sides) > 1 else ""
            if side:
                side.explainer.ranked = {key for key, made in by_key.items() if made.status == OK}
            for made in side.list_predictions(notes) if side else ():
                notes_of = tuple(f"{which}{note}" if note.startswith("never") else note for note in made.notes)
                named, before = replace(made, notes=notes_of), by_key.get(made.line)
                by_key[made.line] = named if before is None else _join_predictions(before, named)
        if isinstance(self._champions, BridgedPair):
            tasks = self._champions.bridge.tasks
            return {key: replace(made, ratios=_list_ratios(made.estimates, tasks)) for key, made in by_key.items()}
        return by_key


def _list_outputs(side: MachineAnswers) -> list[tuple[int, str]]:
    """Return the key of the machine and the task of every row."""
    cells = side.predicted.completed.cells
    return list(zip(cells.index.tolist(), cells[side.champion.task].tolist(), strict=True))


def _list_ratios(estimates: Sequence[Estimate], tasks: Mapping[str, str]) -> tuple[Ratio, ...]:
    """Return the ratio of every estimate of the bridged champion to that which it rests on.

    The interval has the width of the bridged estimate: what is assumed, and what the base errs, is in both.
    Args: `tasks` are those of the base by task of the bridged champion.
    """
    of_base = {estimate.task: estimate for estimate in estimates}
    ratios = []
    for each in estimates:
        base = of_base.get(tasks.get(each.task, ""))
        if base is not None:
            low, high = (None if end is None else end / base.median for end in (each.low, each.high))
            ratios.append(Ratio(each.task, base.task, base.target, each.median / base.median, low, high, each.level))
    return tuple(ratios)


def predict_pair(
    entries: Sequence[MachineEntry],
    pair: BridgedPair,
    options: PredictOptions,
    measurements: Measured = (None, None),
    *,
    strict: bool = False,
    progress: bool = False,
) -> Predictions:
    """Predict every machine that a champion of the pair can use, as `predict_batch` does.

    A machine has the estimates of both and their ratios, with the same assumed values. A machine that neither can use
    is refused with its reason, and one that one of both cannot use has a note.
    Raises: see `parse_pair`.
    """
    sides = parse_pair(entries, pair, strict=strict, asks_capacity=True)
    by_line: dict[int, list[Prediction]] = {entry.line: [] for entry in entries}
    for key, prediction in predict_sides(sides, pair, options, measurements, progress=progress).items():
        side = sides[0] if key in sides[0].machines else sides[1]
        by_line[side.line_of(key)].append(prediction)
    listed = []
    for entry in entries:
        made, refusals = by_line[entry.line], [side.refusals.get(entry.line) for side in sides]
        if all(refusals):
            made = [Prediction(entry.line, entry.label, (), status=REFUSED, message=str(refusals[0]))]
        absent = [f"{each.dataset} has no answer: {error}" for each, error in zip(pair, refusals, strict=True) if error]
        # what names a task is answered by one champion alone
        is_named = any(name.strip().lower() in ("task", pair.base.task) for name in entry.values)
        notes = () if options.tasks or is_named or all(refusals) else tuple(absent)
        listed += [
            replace(each, line=entry.line, notes=(*each.notes, *notes), carried=entry.plain_carried) for each in made
        ]
    features, bases = select(pair.base.predictor.columns_, role=Role.FEATURE), (pair.bridged.basis, pair.base.basis)
    answer = Predictions(*pair.identity, tuple(listed), len(features), bases=bases, month=pair.name_month(options.when))
    return name_tasks(answer, pair.rules.names.task_titles)


def predict_sides(
    sides: Sequence[ParsedMachines],
    champions: Champion | BridgedPair,
    options: PredictOptions,
    measurements: Measured = (None, None),
    *,
    progress: bool = False,
) -> dict[int, Prediction]:
    """Return the prediction of every machine by key, in batches; tasks have their own names."""
    predictions: dict[int, Prediction] = {}
    keys = sorted({key for side in sides for key in side.keys})
    for rows in batches(len(keys), progress=progress):
        chosen = np.array(keys)[rows]
        batch = [side.take(np.isin(side.keys, chosen)) for side in sides]
        made = JointAnswers(batch, champions, options, measurements).list_predictions()
        predictions |= {key: made[key] for key in sorted(made)}
    return predictions


def _join_predictions(first: Prediction, second: Prediction) -> Prediction:
    """Return the predictions of two champions of one machine as one.

    Values are those of the first that answers, but for those that are others in the second.

    The estimates of the second, the later suite, stand first. The basis has the errors and checks of both, and the rest
    of the first.
    """
    if REFUSED in (first.status, second.status):
        return second if first.status == REFUSED else first
    joined = {name: getattr(second, name) + getattr(first, name) for name in ("estimates", "derived", "unpredicted")}
    # what each assumes by itself, such as the day, cannot be typed back for both
    others = {each.column: each.value for each in second.values}
    joined["values"] = tuple(each for each in first.values if others.get(each.column, each.value) == each.value)
    if first.basis and second.basis:
        both = {name: getattr(second.basis, name) + getattr(first.basis, name) for name in ("errors", "checks")}
        joined["basis"] = replace(first.basis, **both)
    return replace(first, notes=tuple(dict.fromkeys((*first.notes, *second.notes))), **joined)
