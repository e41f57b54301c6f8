"""Predict machines with a champion and with one that rests on its estimates, from the same assumed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.champion_pair import BridgedPair, Measured, list_champions, parse_pair
from perfcast.inference.draws import DrawnMachines, FollowedDraws, Mixture, impute_draws, join_draws
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachines
from perfcast.inference.predict import DrawnAnswers, PredictOptions, batches
from perfcast.inference.prediction import OK, REFUSED, Prediction, Predictions, Ratio, name_tasks
from perfcast.schema.table import Role, select
from perfcast.uncertainty.mixture import weighted_medians


def draw_sides(
    sides: Sequence[ParsedMachines], champions: Sequence[Champion], options: PredictOptions
) -> list[DrawnMachines | None]:
    """Draw what is assumed of every machine, of a pair once for both; None for a champion that has no machine.

    The bridged champion follows the draws of the base, see `FollowedDraws`, also where it is asked alone: what is
    assumed does not depend on which of both are asked.
    """
    of_base = _draw(sides[0], champions[0], options)
    if len(sides) == 1:
        return [join_draws(of_base) if of_base else None]
    pair, later = BridgedPair(*champions), sides[1]
    shared = np.isin(later.keys, sides[0].keys)
    # a machine that the base refuses has no answer of it to be matched with
    alone = _draw(later.take(~shared), pair.bridged, options)
    of_bridged = [replace(each, other=np.full_like(each.other, -1)) for each in alone]
    if of_base:
        of_bridged += _draw(later.take(shared), pair.bridged, options, pair.bridge.lead(of_base[0]))
    return [join_draws(drawn) if drawn else None for drawn in (of_base, of_bridged)]


def _draw(
    machines: ParsedMachines, champion: Champion, options: PredictOptions, followed: FollowedDraws | None = None
) -> list[DrawnMachines]:
    """Return the draws of machines, none without a machine."""
    if not machines.keys:
        return []
    return [impute_draws(machines, champion, options.when, assume=options.assume, followed=followed)]


class JointAnswers:
    """Answers of one or both champions about machines that were drawn once.

    `sides` has None for a champion that has no machine.
    """

    def __init__(
        self,
        machines: Sequence[ParsedMachines],
        champions: Champion | BridgedPair,
        options: PredictOptions,
        measurements: Measured = (None, None),
    ) -> None:
        self._machines, self._champions, self._options = machines, champions, options
        listed = list_champions(champions)
        self.sides = [
            None if drawn is None else DrawnAnswers(drawn, champion, options, known)
            for drawn, champion, known in zip(draw_sides(machines, listed, options), listed, measurements, strict=False)
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
        keys, (old, new) = bridged.predicted.completed.cells.index, (base.champion, bridged.champion)
        if bridged.is_corrected:
            note = f"{old.dataset} is not moved by your results of {new.dataset}: these made no estimate of it better"
            return dict.fromkeys(keys.tolist(), (note,))
        rows, old_rows, *_ = self._match_draws(base, bridged)
        known = bridged.predicted.table.frame[BridgedPair(old, new).bridge.columns[-1].name].to_numpy()
        correction, moved, added = bridged.corrections[0], np.zeros(len(keys)), np.zeros(len(keys))
        moved[rows] = (base.corrections[0].shift - base.corrections[0].later)[old_rows]
        added[rows] = np.where(known > 0, 0.0, new.rules.carried * moved)[rows]
        added[bridged.explainer.moves_away(bridged.predicted.medians[:, 0], added, new.predictor.targets_[0])] = 0.0
        bridged.corrections[0] = correction._replace(shift=correction.shift + added)
        bridged.is_corrected = True
        stays = np.setdiff1d(keys[moved != 0], keys[added != 0]).tolist()
        note = f"{new.dataset} is not moved by your results of {old.dataset}: published results of the "
        return dict.fromkeys(stays, (f"{note}{new.rules.entity_name} count",))

    @staticmethod
    def _match_draws(base: DrawnAnswers, bridged: DrawnAnswers) -> tuple[np.ndarray, ...]:
        """Return the bridged machines by task with a base, those of the base, and by draw of both: their numbers and
        weights, and the place of the machine among the first. Shapes: (m,) twice, (k,) four times.
        """
        draws = np.flatnonzero(bridged.drawn.other >= 0)
        old_draws, weights = bridged.drawn.other[draws], bridged.drawn.weights[draws]
        rows, first, places = np.unique(bridged.drawn.owners[draws], return_index=True, return_inverse=True)
        return rows, base.drawn.owners[old_draws[first]], draws, old_draws, weights, places

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
        if base is None or bridged is None or not isinstance(self._champions, BridgedPair):
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
        cells, names = bridged.predicted.completed.cells, self._champions.bridge.tasks
        target = base.champion.predictor.targets_[number]
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
    features, bases = select(pair.base.predictor.columns_, role=Role.FEATURE), (pair.bridged.basis, pair.base.basis)
    answer = Predictions(*pair.identity, tuple(listed), len(features), bases=bases)
    return name_tasks(answer, pair.rules.task_titles)


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
    """Return the predictions of two champions of one machine as one; values are those of the first that answers.

    The estimates of the second, the later suite, stand first. The basis has the errors and checks of both, and the rest
    of the first.
    """
    if REFUSED in (first.status, second.status):
        return second if first.status == REFUSED else first
    joined = {name: getattr(second, name) + getattr(first, name) for name in ("estimates", "derived", "unpredicted")}
    if first.basis and second.basis:
        both = {name: getattr(second.basis, name) + getattr(first.basis, name) for name in ("errors", "checks")}
        joined["basis"] = replace(first.basis, **both)
    return replace(first, notes=tuple(dict.fromkeys((*first.notes, *second.notes))), **joined)
