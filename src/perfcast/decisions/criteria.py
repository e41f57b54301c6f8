"""Criteria of a ranking: products and ratios of scores, watts, prices and probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfcast.decisions.candidates import PRICE, WATTS
from perfcast.decisions.constraints import Constraint, Output, read_output
from perfcast.inference.champion import Champion
from perfcast.inference.prediction import Estimate
from perfcast.utils.errors import UserError

SCORE, PROBABILITY = "score", "probability"
_WORDS = {
    "score": SCORE,
    "watt": WATTS,
    "watts": WATTS,
    "price": PRICE,
    "probability": PROBABILITY,
}
_MAX_WORDS = 8
_MAX_LOGARITHM = 700.0
"""Largest logarithm of a value that a floating-point number holds."""
_OPERATOR = re.compile(r"\s*([*/])\s*")


@dataclass(frozen=True)
class Criterion:
    """Product of powers: `score/watt` has the exponents 1 and -1. Keys: the words, or outputs."""

    text: str
    exponents: Mapping[str | Output, int]


@dataclass(frozen=True)
class Spread:
    """Value with its interval; no interval without a calibration."""

    median: float
    low: float | None
    high: float | None


def read_criterion(text: str, champion: Champion) -> Criterion:
    """Read words joined by * and /: score, watts, price, probability, or a task. Raises: UserError for any other text.

    Exponents of a word add up, so `score*score/price` counts the score twice.
    """
    names = champion.task_names
    pieces = _OPERATOR.split(text.strip())
    if len(pieces) > 2 * _MAX_WORDS:
        raise UserError(f"--by must have at most {_MAX_WORDS} words", f"it has {len(pieces) // 2 + 1}")
    exponents: dict[str | Output, int] = {}
    for position in range(0, len(pieces), 2):
        word = pieces[position].strip()
        if not word:
            raise UserError("--by must be words joined by * and /, such as score/watt", f"it is {text[:80]!r}")
        factor: str | Output | None = _WORDS.get(word.lower())
        if factor is None:
            if names.find(word.rpartition(".")[0] or word) is None and names.find(word) is None:
                requirement = f"--by must name {', '.join(sorted(set(_WORDS.values())))} or a task"
                raise UserError(requirement, f"it names {word[:40]!r}", f"tasks are {', '.join(names.tasks)}")
            factor = read_output(word, champion, "--by")
        sign = -1 if position and pieces[position - 1] == "/" else 1
        exponents[factor] = exponents.get(factor, 0) + sign
    exponents = {factor: power for factor, power in exponents.items() if power}
    if not exponents:
        raise UserError("--by must not divide a word by itself", f"it is {text[:80]!r}")
    return Criterion(text.strip(), exponents)


def read_weights(text: str | None, constraints: Sequence[Constraint], champion: Champion) -> dict[Output, float]:
    """Read `TASK=NUMBER,...`, the weights of the score's tasks, and scale them to the sum 1.

    Without a text every task of the constraints has the same weight, without constraints every task of the champion.
    Raises: UserError for any other text.
    """
    if text is None:
        outputs = list(dict.fromkeys(constraint.output for constraint in constraints))
        if not outputs:
            outputs = [Output(task, target) for task in champion.tasks for target in champion.targets_of(task)]
        return dict.fromkeys(outputs, 1 / len(outputs))
    weights: dict[Output, float] = {}
    for piece in text.split(","):
        word, equals, number = piece.partition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not equals or not (math.isfinite(weight) and weight > 0):
            requirement = "--weights must be TASK=POSITIVE NUMBER, joined by commas, such as CINT2017rate=2"
            raise UserError(requirement, f"it has {piece[:60]!r}", "leave out tasks without a weight")
        output = read_output(word, champion, "--weights")
        if output in weights:
            raise UserError("--weights must name a task once", f"{output.task} is in it twice")
        weights[output] = weight
    total = math.fsum(weights.values())
    return {output: weight / total for output, weight in weights.items()}


def weighted_score(estimates: Mapping[Output, Estimate], weights: Mapping[Output, float]) -> Spread:
    """Return the weighted geometric mean of a machine's estimates.

    Its interval is the mean of theirs in logarithms, as if the errors of one machine were fully correlated.
    """
    weighted = [(estimates[output], weight) for output, weight in weights.items()]
    return Spread(
        _geometric_mean([(estimate.median, weight) for estimate, weight in weighted]) or 0.0,
        _geometric_mean([(estimate.low, weight) for estimate, weight in weighted]),
        _geometric_mean([(estimate.high, weight) for estimate, weight in weighted]),
    )


def evaluate_criterion(
    criterion: Criterion, facts: Mapping[str, float], score: Spread, estimates: Mapping[Output, Estimate]
) -> Spread:
    """Return the value of a candidate; `facts` has the watts, price and probability that the criterion needs.

    The interval is that of the scores in it, each at the end that is worse for the criterion, then at the better one.
    """
    logs = {"low": 0.0, "median": 0.0, "high": 0.0}
    has_interval = True
    for factor, power in criterion.exponents.items():
        if isinstance(factor, str) and factor in facts:
            logarithm = math.log(facts[factor]) if facts[factor] > 0 else -math.inf
            logs = {end: total + power * logarithm for end, total in logs.items()}
            continue
        spread = estimates[factor] if isinstance(factor, Output) else score
        has_interval = has_interval and spread.low is not None
        low, high = (spread.low or spread.median, spread.high or spread.median)[:: 1 if power > 0 else -1]
        for end, number in (("low", low), ("median", spread.median), ("high", high)):
            logs[end] += power * math.log(number)
    low, median, high = (math.exp(min(logs[end], _MAX_LOGARITHM)) for end in ("low", "median", "high"))
    return Spread(median, low if has_interval else None, high if has_interval else None)


def _geometric_mean(numbers: Sequence[tuple[float | None, float]]) -> float | None:
    """Return the weighted geometric mean, None where a number is missing."""
    if any(number is None for number, _ in numbers):
        return None
    return math.exp(math.fsum(weight * math.log(number) for number, weight in numbers if number is not None))
