"""Comparison of machines: scores side by side, probability that one beats another, drivers of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from perfcast.decisions.criteria import RefusedCandidate, error_quantiles
from perfcast.inference.champion import Champion
from perfcast.inference.explain import attribute_difference, list_drivers
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import Answers
from perfcast.inference.prediction import ESTIMATE, ChampionAnswer, Driver, Prediction, name_tasks
from perfcast.inference.suite_answers import SuiteAnswers, list_rows
from perfcast.inference.suites import Measured, Suites, parse_shared
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.uncertainty.conformal import probability_at_least
from perfcast.uncertainty.levels import ErrorRows
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
    entries: Sequence[MachineEntry], suites: Suites, options: PredictOptions, *, measured: Measured = ()
) -> Comparison:
    """Compare machines in every output of every suite; user measurements correct all of them.

    A machine that cannot be used is refused with the reason.
    Raises: UserError for fewer than two machines or more than `MAX_COMPARED`, and where fewer than two can be used.
    """
    placed = [entry._replace(line=place) for place, entry in enumerate(entries)]
    sides = parse_shared(placed, suites)
    machines = sides[0]
    refusals = machines.refusals
    usable = [entry for place, entry in enumerate(entries) if place not in refusals]
    if len(usable) < 2 and refusals:
        raise refusals[min(refusals)]
    count = len(machines.keys)
    if not 2 <= count <= MAX_COMPARED:
        fact = f"there {'is 1' if count == 1 else f'are {count}'}"
        if count > len(usable):
            fact += f", since {suites.rules.typical_values.enumerated} is not given"
        raise UserError(f"2 to {MAX_COMPARED} machines can be compared", fact, "`perfcast rank` orders more")
    answers = Answers(sides, suites, replace(options, neighbors=0, explain=False), measured)
    predictions = answers.predictions
    pairs = [pair for side in reversed(answers.sides) if side for pair in _list_pairs(side)]
    pairs.sort(key=lambda pair: (pair.first, pair.second))
    notes = [f"{_LETTERS[line]}: {note}" for line, listed in machines.notes.items() for note in listed]
    if any(each.calibrated and each.calibrated.known is None for each in suites):
        notes.append("the correlation of errors is not known: the probabilities take the errors as independent")
    notes += suites.notices
    comparison = Comparison(
        *suites.identity,
        month=suites.name_month(options.when),
        level=options.level,
        machines=tuple(replace(each, line=entries[machines.line_of(key)].line) for key, each in predictions.items()),
        pairs=tuple(pairs),
        notes=tuple(notes),
        refused=tuple(
            RefusedCandidate(entry.line, entry.label, str(refusals[place]), entry.plain_carried)
            for place, entry in enumerate(entries)
            if place in refusals
        ),
    )
    return name_tasks(comparison, suites.rules.names.task_titles)


def _list_pairs(side: SuiteAnswers) -> list[ComparedPair]:
    """Return every pair of machines in every output of one champion."""
    champion, frame = side.champion, side.estimates.reset_index(names="place")
    frame = frame[frame["message"] == ""]
    pairs = frame.merge(frame, on=["task", "target"], suffixes=("", "_other"))
    pairs = pairs[pairs["machine"] < pairs["machine_other"]].reset_index(drop=True)
    if pairs.empty:
        return []
    cells = side.predicted.completed.cells
    firsts, seconds = (cells.take(pairs[name].to_numpy()) for name in ("row", "row_other"))
    shares, groups = attribute_difference(firsts, seconds, champion)
    targets = champion.predictor.targets_
    drivers = [
        list_drivers(shares[place, :, targets.index(target)], groups) for place, target in enumerate(pairs["target"])
    ]
    pairs["first"] = [_LETTERS[machine] for machine in pairs["machine"]]
    pairs["second"] = [_LETTERS[machine] for machine in pairs["machine_other"]]
    pairs["ratio"] = pairs["median"] / pairs["median_other"]
    names = ["first", "second", "task", "target", "ratio", "low", "high", "probability", "correlation"]
    rows = list_rows(_add_intervals(pairs, side), names)
    return [replace(ComparedPair(*row), drivers=each) for row, each in zip(rows, drivers, strict=True)]


def _add_intervals(pairs: pd.DataFrame, side: SuiteAnswers) -> pd.DataFrame:
    """Return pairs with the interval of their ratio, the probability that it is above 1, and the correlation.

    They are None without a calibration.
    """
    names = ["low", "high", "probability", "correlation"]
    if side.champion.calibrated is None:
        return pairs.assign(**dict.fromkeys(names))
    correlations = correlate_errors(side.errors, side.champion, side.measurements)
    correlation = correlations[pairs["place"], pairs["place_other"]]
    below = _find_spread(pairs["median"] / pairs["low"], pairs["high_other"] / pairs["median_other"], correlation)
    above = _find_spread(pairs["high"] / pairs["median"], pairs["median_other"] / pairs["low_other"], correlation)
    ratio = pairs["ratio"].to_numpy()
    towards_equal = ratio * np.exp(np.where(ratio > 1, below, above))
    quantiles = [
        error_quantiles(side.champion, output)
        for output in pairs[["task", "target"]].itertuples(index=False, name=None)
    ]
    probability = [
        probability_at_least(1.0, middle, end, side.options.level, errors)
        for middle, end, errors in zip(ratio, towards_equal, quantiles, strict=True)
    ]
    return pairs.assign(
        low=ratio * np.exp(-below), high=ratio * np.exp(above), probability=probability, correlation=correlation
    )


def _find_spread(first: pd.Series, second: pd.Series, correlation: np.ndarray) -> np.ndarray:
    """Return the half widths of differences of two logarithms from the factors of both and their correlations, (n,)."""
    first_log, second_log = (np.log(each.to_numpy(dtype=float)) for each in (first, second))
    variance = first_log**2 + second_log**2 - 2 * correlation * first_log * second_log
    return np.asarray(np.maximum(np.sqrt(np.maximum(variance, 0.0)), _MIN_SPREAD))


def correlate_errors(rows: ErrorRows, champion: Champion, measurements: UserMeasurements | None) -> np.ndarray:
    """Return the correlations of the errors of rows that known errors leave, (n, n); without fitted levels, none."""
    calibrated = champion.calibrated
    known = measurements.known if measurements else calibrated.known if calibrated else None
    return np.eye(len(rows.outputs)) if known is None else known.correlations(rows)
