"""Predict machines with a champion and with one that rests on its estimates, from the same assumed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from perfcast.inference.prediction import REFUSED, Prediction, Predictions, Ratio, join_predictions, name_tasks
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Role, select
from perfcast.uncertainty.mixture import weighted_medians
from perfcast.utils.errors import UserError


class BridgedPair(NamedTuple):
    """A champion, and one whose features are its estimates."""

    base: Champion
    bridged: Champion

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the tasks of both."""
        return {**self.base.rules.task_titles, **self.bridged.rules.task_titles}

    @property
    def task_names(self) -> TaskNames:
        """The names of the tasks of both."""
        aliases = {name: task for each in self for name, task in each.rules.alias_tasks(each.tasks).items()}
        return TaskNames([*self.base.tasks, *self.bridged.tasks], aliases)

    @property
    def bridge(self) -> Base:
        """The bridge between both."""
        if self.bridged.base is None:
            raise ValueError(f"{self.bridged.dataset} has no bridge")
        return self.bridged.base


@dataclass(frozen=True)
class ParsedPair:
    """Machines as each champion of a pair reads them. A machine of both has the same key in both."""

    base: ParsedMachines
    bridged: ParsedMachines

    def take(self, keys: np.ndarray) -> ParsedPair:
        """Return the machines with some keys."""
        return ParsedPair(*(side.take(np.isin(side.keys, keys)) for side in (self.base, self.bridged)))

    def explain_absence(self, line: int, pair: BridgedPair) -> tuple[str, ...]:
        """Return one note on the champion that has no answer about a line, none where both or neither has one.

        A line that names a task has an answer of one champion only.
        """
        sides = ((pair.base, self.base, self.bridged), (pair.bridged, self.bridged, self.base))
        return tuple(
            f"{champion.dataset} has no answer: {side.refusals[line]}"
            for champion, side, other in sides
            if line in side.refusals
            for machine in list(other.machines.values())
            if machine.line == line and champion.task not in machine.cells
        )[:1]


def parse_pair(
    entries: Sequence[MachineEntry],
    pair: BridgedPair,
    *,
    strict: bool = False,
    has_task: bool = True,
    asks_capacity: bool = False,
) -> ParsedPair:
    """Parse machines with the fields of each champion, see `parse_batch`; either may refuse some of them.

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
    return ParsedPair(*sides)


def draw_pair(
    machines: ParsedPair, pair: BridgedPair, options: PredictOptions
) -> tuple[DrawnMachines | None, DrawnMachines | None]:
    """Draw what is assumed of every machine once for both champions; None for one that has no machine.

    A machine whose entity has results behind the bridged champion is drawn from these, since they are of later
    machines, any other from the results of the base. The other champion follows its draws, see `FollowedDraws`.
    """
    base, bridged = pair
    tasks = pair.bridge.tasks
    measured = set(bridged.reference_data.measured.frame[bridged.entity].astype(str))
    entities = zip(machines.bridged.keys, machines.bridged.cells[bridged.entity].tolist(), strict=True)
    leading = [key for key, entity in entities if entity in measured]
    led = np.isin(machines.base.keys, leading)
    leads = ~np.isin(machines.bridged.keys, np.setdiff1d(machines.base.keys, leading))
    # those that are followed stand first, so that their draws keep their numbers
    of_base = _draw(machines.base.take(~led), base, options)
    of_bridged = _draw(machines.bridged.take(leads), bridged, options)
    if of_bridged:
        followed = FollowedDraws(of_bridged[0], {task: name for name, task in tasks.items()})
        of_base += _draw(machines.base.take(led), base, options, followed)
    if of_base:
        of_bridged += _draw(machines.bridged.take(~leads), bridged, options, FollowedDraws(of_base[0], tasks))
    return (join_draws(of_base) if of_base else None), (join_draws(of_bridged) if of_bridged else None)


def _draw(
    machines: ParsedMachines, champion: Champion, options: PredictOptions, followed: FollowedDraws | None = None
) -> list[DrawnMachines]:
    """Return the draws of machines, none without a machine."""
    if not machines.keys:
        return []
    return [impute_draws(machines, champion, options.when, assume=options.assume, followed=followed)]


class PairAnswers:
    """Answers of both champions about machines that were drawn once; None of a champion that has no machine."""

    def __init__(
        self,
        machines: ParsedPair,
        pair: BridgedPair,
        options: PredictOptions,
        measurements: tuple[UserMeasurements | None, UserMeasurements | None] = (None, None),
    ) -> None:
        self._machines, self._pair, self._options = machines, pair, options
        self.sides = [
            None if drawn is None else DrawnAnswers(drawn, champion, options, known)
            for drawn, champion, known in zip(draw_pair(machines, pair, options), pair, measurements, strict=True)
        ]

    def list_predictions(self) -> dict[int, Prediction]:
        """Return the prediction of every machine by key: the estimates of both champions, and their ratios."""
        by_key: dict[int, Prediction] = {}
        for side, machines in zip(self.sides, (self._machines.base, self._machines.bridged), strict=True):
            for each in side.list_predictions(machines.notes) if side else ():
                before = by_key.get(each.line)
                by_key[each.line] = each if before is None else join_predictions(before, each)
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
        base, bridged = self.sides
        if base is None or bridged is None:
            return []
        followers, leaders = (np.flatnonzero(side.drawn.other >= 0) for side in (base, bridged))
        old_draws = np.concatenate([followers, bridged.drawn.other[leaders]])
        draws = np.concatenate([base.drawn.other[followers], leaders])
        weights = np.concatenate([base.drawn.weights[followers], bridged.drawn.weights[leaders]])
        if not len(draws):
            return []
        owners, number = bridged.drawn.owners[draws], 0
        paired, first, places = np.unique(owners, return_index=True, return_inverse=True)
        old = base.drawn.owners[old_draws[first]]
        logs = bridged.predicted.mix(number).logs[draws] - base.predicted.mix(number).logs[old_draws]
        medians = np.full(len(bridged.predicted.medians), np.nan)
        medians[paired] = weighted_medians(logs, places, weights)
        X = bridged.predicted.table.frame
        when = None if self._options.when is None else pd.Series(self._options.when, index=X.index)
        mixed = Mixture(logs, owners, weights, medians)
        intervals = bridged.predicted.intervals(number, when, self._options.level, mixed)
        (shift, narrowing, _), (old_shift, *_) = bridged.corrections[number], base.corrections[number]
        centers = medians[paired] + shift[paired] - old_shift[old]
        cells, names, target = (
            bridged.predicted.completed.cells,
            self._pair.bridge.tasks,
            base.champion.predictor.targets_[number],
        )
        ratios = []
        for row, center in zip(paired.tolist(), centers.tolist(), strict=True):
            ends: list[float | None] = [None, None]
            if intervals is not None:
                below, above = (float(narrowing[row] * intervals[name].iloc[row]) for name in ("below", "above"))
                ends = [float(np.exp(center - below)), float(np.exp(center + above))]
            task = str(cells[bridged.champion.task][row])
            ratio = Ratio(task, names[task], target, float(np.exp(center)), *ends, self._options.level)
            ratios.append((int(cells.index[row]), ratio))
        return ratios


def predict_pair(
    entries: Sequence[MachineEntry],
    pair: BridgedPair,
    options: PredictOptions,
    measurements: tuple[UserMeasurements | None, UserMeasurements | None] = (None, None),
    *,
    strict: bool = False,
    progress: bool = False,
) -> Predictions:
    """Predict every machine that one of both champions can use, as `predict_batch` does: a machine has the estimates
    of both, from the same draws, and their ratios. A machine that neither can use is refused with its reason.

    Raises: see `parse_pair`.
    """
    machines = parse_pair(entries, pair, strict=strict, asks_capacity=True)
    keys = np.union1d(machines.base.keys, machines.bridged.keys).astype(int)
    by_line: dict[int, list[Prediction]] = {entry.line: [] for entry in entries}
    for rows in batches(len(keys), progress=progress):
        batch = machines.take(keys[rows])
        for key, prediction in sorted(PairAnswers(batch, pair, options, measurements).list_predictions().items()):
            side = machines.base if key in machines.base.machines else machines.bridged
            by_line[side.line_of(key)].append(prediction)
    listed = []
    for entry in entries:
        made = by_line[entry.line]
        if not made and (error := machines.base.refusals.get(entry.line)):
            made = [Prediction(entry.line, entry.label, (), status=REFUSED, message=str(error))]
        notes = machines.explain_absence(entry.line, pair) if not options.tasks else ()
        listed += [
            replace(each, line=entry.line, notes=(*each.notes, *notes), carried=entry.plain_carried) for each in made
        ]
    names = (", ".join(dict.fromkeys(each)) for each in zip(*(champion.identity for champion in pair), strict=True))
    features = len(select(pair.base.predictor.columns_, role=Role.FEATURE))
    bases = tuple(champion.basis for champion in pair)
    answer = Predictions(*names, tuple(listed), features, bases=bases)
    return name_tasks(answer, pair.titles)
