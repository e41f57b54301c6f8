"""Predict machines with a champion and with one that rests on its estimates, from the same assumed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.inference.bridge import Base
from perfcast.inference.cells import Cells, CompletedMachines
from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawnMachines, FollowedDraws, Mixture, impute_draws, join_draws
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.name_lookup import TaskNames
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.predict import DrawnAnswers, PredictOptions, batches
from perfcast.inference.prediction import (
    OK,
    REFUSED,
    Prediction,
    Predictions,
    Ratio,
    join_names,
    join_predictions,
    name_tasks,
)
from perfcast.inference.rules import DescriptionRules
from perfcast.inference.user_measurements import UserMeasurements, find_task, read_measurements
from perfcast.schema.table import Role, select
from perfcast.uncertainty.mixture import weighted_medians
from perfcast.utils.errors import UserError


class BridgedPair(NamedTuple):
    """A champion, and one whose features are its estimates."""

    base: Champion
    bridged: Champion

    @property
    def bridge(self) -> Base:
        """The bridge between both."""
        if self.bridged.base is None:
            raise ValueError(f"{self.bridged.dataset} has no bridge")
        return self.bridged.base

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What `Champion.identity` has, of both."""
        names = zip(self.base.identity, self.bridged.identity, strict=True)
        dataset, name, preset, results_until = (join_names(*each) for each in names)
        return dataset, name, preset, results_until

    @property
    def rules(self) -> DescriptionRules:
        """The rules of the base, with the titles of the tasks of both."""
        rules = copy(self.base.rules)
        rules.task_titles = {**rules.task_titles, **self.bridged.rules.task_titles}
        return rules

    @property
    def tasks(self) -> list[str]:
        """The tasks of both."""
        return [*self.base.tasks, *self.bridged.tasks]

    @property
    def task_names(self) -> TaskNames:
        """The names of the tasks of both."""
        aliases = {name: task for each in self for name, task in each.rules.alias_tasks(each.tasks).items()}
        return TaskNames(self.tasks, aliases)

    @property
    def targets_of(self) -> dict[str, Sequence[str]]:
        """The targets of every task."""
        return {**self.base.targets_of, **self.bridged.targets_of}


def list_champions(asked: Champion | BridgedPair) -> tuple[Champion, ...]:
    """Return the champion, or both of a pair."""
    return tuple(asked) if isinstance(asked, BridgedPair) else (asked,)


def parse_pair(
    entries: Sequence[MachineEntry],
    pair: BridgedPair,
    *,
    strict: bool = False,
    has_task: bool = True,
    asks_capacity: bool = False,
) -> tuple[ParsedMachines, ParsedMachines]:
    """Parse machines with the fields of each champion, see `parse_batch`; either may refuse some of them.

    A machine that both can use has the same key in both.
    Raises: UserError of the first machine that neither can use, with `strict` or when it is the only one.
    """
    parsed = []
    for champion in pair:
        try:
            parsed.append(parse_batch(entries, champion, has_task=has_task, asks_capacity=asks_capacity))
        except UserError as error:  # the only machine
            refusals = {entry.line: error for entry in entries}
            parsed.append(replace(parse_batch([], champion), refusals=refusals))
    first, second = (machines.refusals for machines in parsed)
    neither = [entry.line for entry in entries if entry.line in first and entry.line in second]
    if neither and (strict or len(entries) == 1):
        raise first[neither[0]]
    numbers: dict[tuple[object, ...], int] = {}
    sides = []
    for machines in parsed:
        keys = []
        for key in machines.keys:
            # alternatives of one line differ in a number; names may be spelled differently
            values = machines.machines[key].cells.items()
            given = sorted((name, value) for name, value in values if isinstance(value, float))
            keys.append(numbers.setdefault((machines.line_of(key), *given), len(numbers)))
        known = CompletedMachines(Cells(machines.cells, np.array(keys, dtype=int)), machines.known.codes)
        by_key = dict(zip(keys, (machines.machines[key] for key in machines.keys), strict=True))
        sides.append(replace(machines, known=known, machines=by_key))
    return sides[0], sides[1]


def parse_shared(
    entries: Sequence[MachineEntry], asked: Champion | BridgedPair, *, strict: bool = False
) -> tuple[ParsedMachines, ...]:
    """Parse machines without a task that every champion can use, in one order; the first side has all refusals.

    Raises: UserError of the first other machine, with `strict` or when it is the only one.
    """
    if not isinstance(asked, BridgedPair):
        return (parse_batch(entries, asked, strict=strict, has_task=False),)
    sides = parse_pair(entries, asked, strict=strict, has_task=False)
    refusals = {**sides[1].refusals, **sides[0].refusals}
    if refusals and (strict or len(entries) == 1):
        raise refusals[min(refusals)]
    keys = [key for key in sides[0].keys if key in set(sides[1].keys)]
    rows = (np.array([side.keys.index(key) for key in keys], dtype=int) for side in sides)
    shared = [side.take(taken).numbered() for side, taken in zip(sides, rows, strict=True)]
    return replace(shared[0], refusals=refusals), shared[1]


def draw_sides(
    sides: Sequence[ParsedMachines], champions: Sequence[Champion], options: PredictOptions
) -> list[DrawnMachines | None]:
    """Draw what is assumed of every machine, of a pair once for both; None for a champion that has no machine.

    A machine whose entity has results behind the bridged champion is drawn from these, since they are of later
    machines, any other from the results of the base. The other champion follows its draws, see `FollowedDraws`.
    """
    if len(sides) == 1:
        return [join_draws(_draw(sides[0], champions[0], options))] if sides[0].keys else [None]
    pair, (machines, later) = BridgedPair(*champions), sides
    base, bridged = pair
    tasks = pair.bridge.tasks
    measured = set(bridged.reference_data.measured.frame[bridged.entity].astype(str))
    entities = zip(later.keys, later.cells[bridged.entity].tolist(), strict=True)
    leading = [key for key, entity in entities if entity in measured]
    led = np.isin(machines.keys, leading)
    leads = ~np.isin(later.keys, np.setdiff1d(machines.keys, leading))
    # those that are followed stand first, so that their draws keep their numbers
    of_base, of_bridged = _draw(machines.take(~led), base, options), _draw(later.take(leads), bridged, options)
    if of_bridged:
        followed = FollowedDraws(of_bridged[0], {task: name for name, task in tasks.items()})
        of_base += _draw(machines.take(led), base, options, followed)
    if of_base:
        of_bridged += _draw(later.take(~leads), bridged, options, FollowedDraws(of_base[0], tasks))
    return [join_draws(drawn) if drawn else None for drawn in (of_base, of_bridged)]


def _draw(
    machines: ParsedMachines, champion: Champion, options: PredictOptions, followed: FollowedDraws | None = None
) -> list[DrawnMachines]:
    """Return the draws of machines, none without a machine."""
    if not machines.keys:
        return []
    return [impute_draws(machines, champion, options.when, assume=options.assume, followed=followed)]


Measured = Sequence[UserMeasurements | None]
"""User measurements by champion."""


def read_measured(
    entries: Sequence[MachineEntry], asked: Champion | BridgedPair, machine: Mapping[str, object] | None = None
) -> Measured:
    """Read measured scores, of a pair each by the champion of its task, see `read_measurements`.

    Raises: UserError for a task that neither has, and for values that cannot be used.
    """
    if not isinstance(asked, BridgedPair):
        return (read_measurements(entries, asked, machine),)
    sides: tuple[list[MachineEntry], list[MachineEntry]] = ([], [])
    for entry in entries:
        task = find_task({**(machine or {}), **entry.values}, asked.base)
        known = task is None or asked.task_names.get(task, entry.label) in asked.base.tasks
        sides[not known].append(entry)
    return [read_measurements(each, by, machine) if each else None for each, by in zip(sides, asked, strict=True)]


class JointAnswers:
    """Answers of one or both champions about machines that were drawn once.

    `sides` has None for a champion that has no machine.
    """

    def __init__(
        self,
        machines: Sequence[ParsedMachines],
        asked: Champion | BridgedPair,
        options: PredictOptions,
        measurements: Measured = (None, None),
    ) -> None:
        self._machines, self._asked, self._options = machines, asked, options
        champions = list_champions(asked)
        self.sides = [
            None if drawn is None else DrawnAnswers(drawn, champion, options, known)
            for drawn, champion, known in zip(
                draw_sides(machines, champions, options), champions, measurements, strict=False
            )
        ]

        self._unmoved = self._carry()

    def _carry(self) -> dict[int, tuple[str, ...]]:
        """Carry what user measurements change in the base to the bridged champion, and return notes by key.

        An estimate of an entity without results in the base takes over a share, unless that leads away from published
        results. Nothing is carried to a champion with measurements of its own, nor back to the base.
        """
        base, bridged = (*self.sides, None)[:2]
        if base is None or bridged is None or base.is_corrected == bridged.is_corrected:
            return {}
        from_base, keys = base.is_corrected, bridged.predicted.completed.cells.index
        note = (
            f"{(bridged if from_base else base).champion.dataset} is not moved by your results of "
            f"{(base if from_base else bridged).champion.dataset}: on published results, that made no estimate better"
        )
        if not from_base:
            return dict.fromkeys(keys.tolist(), (note,))
        rows, old, *_ = self._match_draws(base, bridged)
        known = bridged.predicted.table.frame[BridgedPair(base.champion, bridged.champion).bridge.columns[-1].name]
        correction, added = bridged.corrections[0], np.zeros(len(keys))
        moved = base.corrections[0].shift[old] - base.corrections[0].later[old]
        added[rows] = np.where(known.to_numpy()[rows] > 0, 0.0, bridged.champion.rules.carried * moved)
        target = bridged.champion.predictor.targets_[0]
        added[bridged.explainer.moves_away(bridged.predicted.medians[:, 0], added, target)] = 0.0
        bridged.corrections[0] = correction._replace(shift=correction.shift + added)
        bridged.is_corrected = True
        return dict.fromkeys(np.setdiff1d(keys, keys[added != 0]).tolist(), (note,))

    @staticmethod
    def _match_draws(base: DrawnAnswers, bridged: DrawnAnswers) -> tuple[np.ndarray, ...]:
        """Return the bridged machines by task with a base, those of the base, and by draw of both: their numbers and
        weights, and the place of the machine among the first. Shapes: (m,) twice, (k,) four times.
        """
        followers, leaders = (np.flatnonzero(side.drawn.other >= 0) for side in (base, bridged))
        draws = np.concatenate([base.drawn.other[followers], leaders])
        old_draws = np.concatenate([followers, bridged.drawn.other[leaders]])
        weights = np.concatenate([base.drawn.weights[followers], bridged.drawn.weights[leaders]])
        rows, first, places = np.unique(bridged.drawn.owners[draws], return_index=True, return_inverse=True)
        return rows, base.drawn.owners[old_draws[first]], draws, old_draws, weights, places

    def list_predictions(self) -> dict[int, Prediction]:
        """Return the prediction of every machine by key: the estimates of all champions, and the ratios of a pair."""
        by_key: dict[int, Prediction] = {}
        champions = list_champions(self._asked)
        for side, machines, champion in zip(self.sides, self._machines, champions, strict=True):
            notes = {key: (*machines.notes.get(key, ()), *self._unmoved.get(key, ())) for key in machines.keys}
            which = f"{champion.dataset}: " if len(self.sides) > 1 else ""
            if side:
                side.explainer.ranked = {key for key, made in by_key.items() if made.status == OK}
            for made in side.list_predictions(notes) if side else ():
                told = tuple(f"{which}{note}" if note.startswith("never") else note for note in made.notes)
                named, before = replace(made, notes=told), by_key.get(made.line)
                by_key[made.line] = named if before is None else join_predictions(before, named)
        ratios: dict[int, list[Ratio]] = {}
        for key, ratio in self.list_ratios():
            tasks = {estimate.task for estimate in by_key[key].estimates} if key in by_key else set()
            if {ratio.task, ratio.base_task} <= tasks:
                ratios.setdefault(key, []).append(ratio)
        return by_key | {key: replace(by_key[key], ratios=tuple(listed)) for key, listed in ratios.items()}

    def list_ratios(self) -> list[tuple[int, Ratio]]:
        """Return the key of the machine and the ratio of every pair of tasks, in the order of the bridged champion.

        The interval is that of the mixture of the differences of both predictions in each draw, each with the width of
        the bridged champion: what the draws assume, and what the base errs, is in both.
        """
        base, bridged = (*self.sides, None)[:2]
        if base is None or bridged is None or not isinstance(self._asked, BridgedPair):
            return []
        paired, old, draws, old_draws, weights, places = self._match_draws(base, bridged)
        if not len(draws):
            return []
        number = 0
        logs = bridged.predicted.mix(number).logs[draws] - base.predicted.mix(number).logs[old_draws]
        medians = np.full(len(bridged.predicted.medians), np.nan)
        medians[paired] = weighted_medians(logs, places, weights)
        X = bridged.predicted.table.frame
        when = None if self._options.when is None else pd.Series(self._options.when, index=X.index)
        mixed = Mixture(logs, paired[places], weights, medians)
        intervals = bridged.predicted.intervals(number, when, self._options.level, mixed)
        (shift, narrowing, _), (old_shift, *_) = bridged.corrections[number], base.corrections[number]
        centers = medians[paired] + shift[paired] - old_shift[old]
        cells, names, target = (
            bridged.predicted.completed.cells,
            self._asked.bridge.tasks,
            base.champion.predictor.targets_[number],
        )
        ratios = []
        for row, center in zip(paired.tolist(), centers.tolist(), strict=True):
            low = high = None
            if intervals is not None:
                below, above = (float(narrowing[row] * intervals[name].iloc[row]) for name in ("below", "above"))
                low, high = float(np.exp(center - below)), float(np.exp(center + above))
            task, median = str(cells[bridged.champion.task][row]), float(np.exp(center))
            ratio = Ratio(task, names[task], target, median, low, high, self._options.level)
            ratios.append((int(cells.index[row]), ratio))
        return ratios


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

    A machine has the estimates of both, from the same draws, and their ratios. A machine that neither can use is
    refused with its reason, and one that one of both cannot use has a note.
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
    features, bases = select(pair.base.predictor.columns_, role=Role.FEATURE), tuple(each.basis for each in pair)
    answer = Predictions(*pair.identity, tuple(listed), len(features), bases=bases)
    return name_tasks(answer, pair.rules.task_titles)


def predict_sides(
    sides: Sequence[ParsedMachines],
    asked: Champion | BridgedPair,
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
        made = JointAnswers(batch, asked, options, measurements).list_predictions()
        predictions |= {key: made[key] for key in sorted(made)}
    return predictions
