"""Comparison of machines: scores side by side, probability that one beats another, drivers of the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, permutations

import numpy as np
import pandas as pd

from perfcast.decisions.criteria import Output, RefusedCandidate, error_quantiles
from perfcast.inference.bridged import JointAnswers
from perfcast.inference.champion import Champion
from perfcast.inference.champion_pair import BridgedPair, Measured, list_champions, parse_shared
from perfcast.inference.explain import attribute_difference, list_drivers
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.inference.predict import MachineAnswers, PredictOptions
from perfcast.inference.prediction import ESTIMATE, ChampionAnswer, Driver, Estimate, Prediction, name_tasks
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import probability_at_least
from perfcast.uncertainty.levels import ErrorRows, outputs_of, shared_labels
from perfcast.utils.errors import UserError

_LETTERS = "ABCDEFGH"
MAX_COMPARED = len(_LETTERS)
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
class Comparison(ChampionAnswer):
    """Machines side by side, named A, B, C in their order, and every pair of them in every output of both.

    The `refused` ones have no letter.
    """

    level: float
    machines: tuple[Prediction, ...]
    pairs: tuple[ComparedPair, ...]
    notes: tuple[str, ...] = ()
    kind: str = ESTIMATE
    refused: tuple[RefusedCandidate, ...] = ()

    @property
    def letters(self) -> dict[str, Prediction]:
        """The machines by letter."""
        return dict(zip(_LETTERS, self.machines, strict=False))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair and output."""
        names = {letter: machine.machine for letter, machine in self.letters.items()}
        rows = []
        for pair in self.pairs:
            factors = {f"driver {driver.group}": driver.factor for driver in pair.drivers}
            row = {name: value for name, value in asdict(pair).items() if name != "drivers"}
            rows.append({**row, "first_machine": names[pair.first], "second_machine": names[pair.second], **factors})
        return pd.DataFrame(rows)


def compare_machines(
    entries: Sequence[MachineEntry],
    champion: Champion | BridgedPair,
    options: PredictOptions,
    *,
    measurements: Measured = (None,) * 2,
) -> Comparison:
    """Compare machines in every output of one champion or both; user measurements correct all of them.

    A machine that cannot be used is refused with the reason.
    Raises: UserError for fewer than two machines or more than `MAX_COMPARED`, and where fewer than two can be used.
    """
    placed = [entry._replace(line=place) for place, entry in enumerate(entries)]
    sides = [side.numbered() for side in parse_shared(placed, champion)]
    machines = sides[0]
    refusals = machines.refusals
    usable = [entry for place, entry in enumerate(entries) if place not in refusals]
    if len(usable) < 2 and refusals:
        raise refusals[min(refusals)]
    count = len(machines.keys)
    if not 2 <= count <= MAX_COMPARED:
        fact = f"there {'is 1' if count == 1 else f'are {count}'}"
        if count > len(usable):
            fact += f", since {champion.rules.typical_values.enumerated} is not given"
        raise UserError(f"2 to {MAX_COMPARED} machines can be compared", fact, "`perfcast rank` orders more")
    joint = JointAnswers(sides, champion, replace(options, neighbors=0, explain=False), measurements)
    answer = [prediction for _, prediction in sorted(joint.list_predictions().items())]
    pairs = [pair for side in reversed(joint.sides) if side for pair in _list_pairs(side, answer)]
    pairs.sort(key=lambda pair: (pair.first, pair.second))
    notes = [f"{_LETTERS[line]}: {note}" for line, listed in machines.notes.items() for note in listed]
    if any(each.calibrated and each.calibrated.known is None for each in list_champions(champion)):
        notes.append("the correlation of errors is not known: the probabilities take the errors as independent")
    notes += champion.notices
    comparison = Comparison(
        *champion.identity,
        month=champion.name_month(options.when),
        level=options.level,
        machines=tuple(replace(each, line=entries[machines.line_of(each.line)].line) for each in answer),
        pairs=tuple(pairs),
        notes=tuple(notes),
        refused=tuple(
            RefusedCandidate(entry.line, entry.label, str(refusals[place]), entry.plain_carried)
            for place, entry in enumerate(entries)
            if place in refusals
        ),
    )
    return name_tasks(comparison, champion.rules.names.task_titles)


def _list_pairs(side: MachineAnswers, answer: Sequence[Prediction]) -> list[ComparedPair]:
    """Return every pair of machines in every output of one champion."""
    predictions, champion = side.predicted, side.champion
    drivers, targets = _find_drivers(predictions, champion), champion.predictor.targets_
    of_rows = predictions.table.frame[predictions.table.column_of(Tag.TASK)]
    labels = pd.concat([shared_labels(predictions.table)] * len(targets), ignore_index=True)
    rows_of_errors = ErrorRows(labels, np.concatenate([outputs_of(of_rows, target) for target in targets]))
    correlations = correlate_errors(rows_of_errors, champion, side.measurements)
    lines, tasks = predictions.completed.cells.index.tolist(), of_rows.astype(str).tolist()
    row_of = {key: row for row, key in enumerate(zip(lines, tasks, strict=True))}
    by_line = {each.line: {Output.of(estimate): estimate for estimate in each.estimates} for each in answer}
    pairs = []
    for first, second in combinations(range(len(answer)), 2):
        for output, estimate in by_line[first].items():
            other = by_line[second].get(output)
            if other and output.task in champion.tasks:
                rows, number = (row_of[first, output.task], row_of[second, output.task]), targets.index(output.target)
                places = tuple(number * len(tasks) + row for row in rows)
                pair = _compare(estimate, other, float(correlations[places]), champion)
                shares, groups = drivers[rows]
                listed = list_drivers(shares[:, number], groups)
                pairs.append(replace(pair, first=_LETTERS[first], second=_LETTERS[second], drivers=listed))
    return pairs


def correlate_errors(rows: ErrorRows, champion: Champion, measurements: UserMeasurements | None) -> np.ndarray:
    """Return the correlations of the errors of rows that known errors leave, (n, n); without fitted levels, none."""
    calibrated = champion.calibrated
    known = measurements.known if measurements else calibrated.known if calibrated else None
    return np.eye(len(rows.outputs)) if known is None else known.correlations(rows)


def _compare(first: Estimate, second: Estimate, correlation: float, champion: Champion) -> ComparedPair:
    ratio = first.median / second.median
    pair = ComparedPair("", "", first.task, first.target, ratio, None, None, None, None)
    errors = error_quantiles(first, champion)
    if errors is None or second.low is None or second.high is None or first.low is None or first.high is None:
        return pair
    below = _find_spread(first.median / first.low, second.high / second.median, correlation)
    above = _find_spread(first.high / first.median, second.median / second.low, correlation)
    towards_equal = below if ratio > 1 else above
    return replace(
        pair,
        low=ratio * float(np.exp(-below)),
        high=ratio * float(np.exp(above)),
        probability=probability_at_least(1.0, ratio, ratio * float(np.exp(towards_equal)), first.level, errors),
        correlation=correlation,
    )


def _find_spread(first: float, second: float, correlation: float) -> float:
    """Return the half width of a difference of two logarithms from the factors of both and their correlation."""
    first_log, other = float(np.log(first)), float(np.log(second))
    return max(float(np.sqrt(max(first_log**2 + other**2 - 2 * correlation * first_log * other, 0.0))), _MIN_SPREAD)


def _find_drivers(
    predictions: MachinePredictions, champion: Champion
) -> Mapping[tuple[int, int], tuple[np.ndarray, list[str]]]:
    """Return for every pair of rows of one task the share of every group, (groups, targets), and the groups."""
    cells = predictions.completed.cells
    tasks = cells[champion.task].tolist()
    lines = cells.index.tolist()
    pairs = [(a, b) for a, b in permutations(range(len(tasks)), 2) if tasks[a] == tasks[b] and lines[a] < lines[b]]
    firsts, seconds = (cells.take(np.array(rows)) for rows in zip(*pairs, strict=True))
    shares, groups = attribute_difference(firsts, seconds, champion)
    return {pair: (shares[place], groups) for place, pair in enumerate(pairs)}
