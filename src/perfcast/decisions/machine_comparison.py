"""Comparison of machines: scores side by side, probability that one beats another, drivers of the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from perfcast.decisions.joint_errors import JointErrors
from perfcast.decisions.ranking_answer import RefusedCandidate
from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawPredictions, impute_draws
from perfcast.inference.explain import attribute_difference, list_drivers
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import ESTIMATE, Answer, Driver, Estimate, Prediction, name_tasks
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import outputs_of, probability_at_least
from perfcast.utils.errors import UserError

MAX_COMPARED = 8
"""Most machines of a comparison: pairs grow with their square."""
_MIN_SPREAD = 1e-9


@dataclass(frozen=True)
class ComparedPair:
    """First machine against the second one in one output; both are letters of the machines.

    `ratio` is the score of the first over that of the second, with an interval of the comparison's level.
    `probability` is that of a higher score of the first: their errors are correlated by `correlation`. They are None
    without a calibration. `drivers` lead from the second machine to the first.
    """

    first: str
    second: str
    task: str
    target: str
    ratio: float
    low: float | None
    high: float | None
    probability: float | None
    correlation: float | None
    drivers: tuple[Driver, ...] = ()


@dataclass(frozen=True, repr=False)
class Comparison(Answer):
    """Machines side by side, named A, B, C in their order, and every pair of them in every output of both.

    The `refused` ones have no letter.
    """

    dataset: str
    champion: str
    preset: str
    level: float
    machines: tuple[Prediction, ...]
    pairs: tuple[ComparedPair, ...]
    notes: tuple[str, ...] = ()
    kind: str = ESTIMATE
    refused: tuple[RefusedCandidate, ...] = ()

    @property
    def letters(self) -> dict[str, Prediction]:
        """The machines by letter."""
        return {letter_of(place): machine for place, machine in enumerate(self.machines)}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair and output."""
        names = {letter: machine.machine for letter, machine in self.letters.items()}
        rows = []
        for pair in self.pairs:
            factors = {f"driver {driver.group}": driver.factor for driver in pair.drivers}
            row = {name: value for name, value in asdict(pair).items() if name != "drivers"}
            rows.append({**row, "first_machine": names[pair.first], "second_machine": names[pair.second], **factors})
        return pd.DataFrame(rows)


def letter_of(place: int) -> str:
    """Return the letter of the machine at a place, from 0."""
    return chr(ord("A") + place)


def compare_machines(
    entries: Sequence[MachineEntry],
    champion: Champion,
    options: PredictOptions,
    *,
    measurements: UserMeasurements | None = None,
) -> Comparison:
    """Compare machines in every output; user measurements correct all of them, see `predict_machines`.

    A machine that cannot be used is refused with the reason.
    Raises: UserError for fewer than two machines or more than `MAX_COMPARED`, and where fewer than two can be used.
    """
    placed = [entry._replace(line=place) for place, entry in enumerate(entries)]
    machines = parse_batch(placed, champion, has_task=False).numbered()
    refusals = machines.refusals
    usable = [entry for place, entry in enumerate(entries) if place not in refusals]
    if len(usable) < 2 and refusals:
        raise refusals[min(refusals)]
    count = len(machines.keys)
    if not 2 <= count <= MAX_COMPARED:
        fact = f"there {'is 1' if count == 1 else f'are {count}'}"
        if count > len(usable):
            fact += f", since {champion.rules.enumerated} is not given"
        raise UserError(f"2 to {MAX_COMPARED} machines can be compared", fact, "`perfcast rank` orders more")
    answer = predict_machines(machines, champion, replace(options, explain=False), measurements)
    drawn = DrawPredictions(impute_draws(machines, champion, assume=options.assume), champion)
    drivers = _find_drivers(drawn, champion)
    errors = JointErrors(drawn, champion, options, measurements)
    lines = drawn.completed.frame.index.tolist()
    tasks = drawn.table.frame[drawn.table.column_of(Tag.TASK)].astype(str).tolist()
    row_of = {(line, name): row for row, (line, name) in enumerate(zip(lines, tasks, strict=True))}
    by_line = {prediction.line: prediction for prediction in answer}
    pairs = []
    for first, second in combinations(range(count), 2):
        others = {(each.task, each.target): each for each in by_line[second].estimates}
        for estimate in by_line[first].estimates:
            other = others.get((estimate.task, estimate.target))
            if other is None:
                continue
            rows = row_of[first, estimate.task], row_of[second, estimate.task]
            output = estimate.task, estimate.target
            pair = _compare(estimate, other, errors.between((first, *output), (second, *output)), champion)
            shares, groups = drivers[rows]
            number = champion.predictor.targets_.index(estimate.target)
            named = replace(pair, first=letter_of(first), second=letter_of(second))
            pairs.append(replace(named, drivers=list_drivers(shares[:, number], groups)))
    comparison = Comparison(
        dataset=champion.dataset,
        champion=champion.name,
        preset=champion.preset,
        level=options.level,
        machines=tuple(replace(each, line=entries[machines.line_of(each.line)].line) for each in answer),
        pairs=tuple(pairs),
        notes=_list_notes(machines, champion),
        refused=tuple(
            RefusedCandidate(entry.line, entry.label, str(refusals[place]), entry.plain_carried)
            for place, entry in enumerate(entries)
            if place in refusals
        ),
    )
    return name_tasks(comparison, champion.rules.task_titles)


def _compare(first: Estimate, second: Estimate, correlation: float, champion: Champion) -> ComparedPair:
    ratio = first.median / second.median
    pair = ComparedPair("", "", first.task, first.target, ratio, None, None, None, None)
    if champion.calibrated is None or None in (first.low, first.high, second.low, second.high):
        return pair
    below = _spread_of_difference(_below(first), _above(second), correlation)
    above = _spread_of_difference(_above(first), _below(second), correlation)
    quantiles = champion.calibrated.calibration.quantiles
    errors = quantiles.get(str(outputs_of(pd.Series([first.task]), first.target)[0]), quantiles[""])
    towards_equal = below if ratio > 1 else above
    return replace(
        pair,
        low=ratio * float(np.exp(-below)),
        high=ratio * float(np.exp(above)),
        probability=probability_at_least(1.0, ratio, ratio * float(np.exp(towards_equal)), first.level, errors),
        correlation=correlation,
    )


def _below(estimate: Estimate) -> float:
    return float(np.log(estimate.median / (estimate.low or estimate.median)))


def _above(estimate: Estimate) -> float:
    return float(np.log((estimate.high or estimate.median) / estimate.median))


def _spread_of_difference(first: float, second: float, correlation: float) -> float:
    """Return the half width of a difference of two logarithms from theirs and the correlation of their errors."""
    return max(float(np.sqrt(max(first**2 + second**2 - 2 * correlation * first * second, 0.0))), _MIN_SPREAD)


def _find_drivers(drawn: DrawPredictions, champion: Champion) -> Mapping[tuple[int, int], tuple[np.ndarray, list[str]]]:
    """Return for every pair of rows of one task the share of every group, (groups, targets), and the groups."""
    cells = drawn.completed.cells
    tasks = cells[champion.reference_data.measured.column_of(Tag.TASK)].tolist()
    pairs = [(a, b) for a, b in combinations(range(len(tasks)), 2) if tasks[a] == tasks[b]]
    firsts, seconds = (cells.take(np.array(rows)) for rows in zip(*pairs, strict=True))
    shares, groups = attribute_difference(firsts, seconds, champion)
    return {pair: (shares[place], groups) for place, pair in enumerate(pairs)}


def _list_notes(machines: ParsedMachines, champion: Champion) -> tuple[str, ...]:
    notes = [f"{letter_of(line)}: {note}" for line, lines in machines.notes.items() for note in lines]
    calibrated = champion.calibrated
    if calibrated is not None and calibrated.correlation is None:
        notes.append("the correlation of errors is not known: the probabilities take the errors as independent")
    return tuple(notes)
