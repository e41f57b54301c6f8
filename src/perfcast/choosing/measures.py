"""By what candidates are ordered: scores, watts, prices, probabilities, and products and ratios of them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfcast.choosing.goals import Goal, Question, read_question
from perfcast.errors import UserError
from perfcast.forecasting import Champion, Estimate
from perfcast.forecasting.tasks import TaskNames, targets_of

SCORE, WATTS, PRICE, PROBABILITY = "score", "watts", "price", "probability"
_WORDS = {
    "score": SCORE,
    "watt": WATTS,
    "watts": WATTS,
    "price": PRICE,
    "probability": PROBABILITY,
}
_MOST_WORDS = 8
_LARGEST = 700.0
"""The largest logarithm of a measure: a number of the machine holds no more."""
_OPERATOR = re.compile(r"\s*([*/])\s*")


@dataclass(frozen=True)
class Measure:
    """A product of powers: `score/watt` has the exponents 1 and -1. Keys: the words, or questions."""

    text: str
    exponents: Mapping[str | Question, int]

    def needs(self, word: str) -> bool:
        """Tell whether a word is in it."""
        return word in self.exponents

    @property
    def questions(self) -> list[Question]:
        """The tasks that it names itself."""
        return [factor for factor in self.exponents if isinstance(factor, Question)]


@dataclass(frozen=True)
class Spread:
    """A number with its interval; no interval without a calibration."""

    median: float
    low: float | None
    high: float | None


def read_measure(text: str, champion: Champion) -> Measure:
    """Read words joined by * and /: score, watts, price, probability, or a task. Raises: UserError for anything else.

    Exponents of a word add up, so `score*score/price` counts the score twice.
    """
    names = TaskNames(champion)
    pieces = _OPERATOR.split(text.strip())
    if len(pieces) > 2 * _MOST_WORDS:
        raise UserError(f"--by must have at most {_MOST_WORDS} words", f"it has {len(pieces) // 2 + 1}")
    exponents: dict[str | Question, int] = {}
    for place in range(0, len(pieces), 2):
        word = pieces[place].strip()
        if not word:
            raise UserError("--by must be words joined by * and /, such as score/watt", f"it is {text[:80]!r}")
        factor: str | Question | None = _WORDS.get(word.lower())
        if factor is None:
            if names.find(word.rpartition(".")[0] or word) is None and names.find(word) is None:
                requirement = f"--by must name {', '.join(sorted(set(_WORDS.values())))} or a task"
                raise UserError(requirement, f"it names {word[:40]!r}", f"tasks are {', '.join(names.tasks)}")
            factor = read_question(word, names, champion, "--by")
        sign = -1 if place and pieces[place - 1] == "/" else 1
        exponents[factor] = exponents.get(factor, 0) + sign
    kept = {factor: power for factor, power in exponents.items() if power}
    if not kept:
        raise UserError("--by must not divide a thing by itself", f"it is {text[:80]!r}")
    return Measure(text.strip(), kept)


def read_weights(text: str | None, goals: Sequence[Goal], champion: Champion) -> dict[Question, float]:
    """Read `TASK=NUMBER,...`, the weights of the score's tasks; they are given so that their sum is 1.

    Without any: the same for every task of the goals, else for every task of the champion.
    Raises: UserError for what is no such text.
    """
    names = TaskNames(champion)
    if text is None:
        known = [Question(task, target) for task in names.tasks for target in targets_of(champion, task)]
        asked = list(dict.fromkeys(goal.question for goal in goals)) or known
        return dict.fromkeys(asked, 1 / len(asked))
    found: dict[Question, float] = {}
    for piece in text.split(","):
        word, equals, number = piece.partition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not equals or not (math.isfinite(weight) and weight > 0):
            requirement = "--weights must be TASK=POSITIVE NUMBER, joined by commas, such as CINT2017rate=2"
            raise UserError(requirement, f"it has {piece[:60]!r}", "leave out what has no weight")
        question = read_question(word, names, champion, "--weights")
        if question in found:
            raise UserError("--weights must name a task once", f"{question.task} is in it twice")
        found[question] = weight
    total = math.fsum(found.values())
    return {question: weight / total for question, weight in found.items()}


def score(estimates: Mapping[Question, Estimate], weights: Mapping[Question, float]) -> Spread:
    """Return the weighted geometric mean of a machine's estimates.

    Its interval is the mean of theirs in logarithms, as if the errors of one machine always went together.
    """
    own = [(estimates[question], weight) for question, weight in weights.items()]
    return Spread(*(_mean([(end(one), weight) for one, weight in own]) for end in (_median, _low, _high)))  # type: ignore[arg-type]


def value(measure: Measure, facts: Mapping[str, float], mean: Spread, estimates: Mapping[Question, Estimate]) -> Spread:
    """Return a candidate's measure; `facts` has the watts, price and probability that it needs.

    The interval is that of the scores in it, each at the end that is worse for the measure, then at the better one.
    """
    ends = {"low": 0.0, "median": 0.0, "high": 0.0}
    known = True
    for factor, power in measure.exponents.items():
        if factor in facts:
            logarithm = math.log(facts[factor]) if facts[factor] > 0 else -math.inf  # type: ignore[index]
            ends = {end: total + power * logarithm for end, total in ends.items()}
            continue
        one = mean if factor == SCORE else _spread(estimates[factor])  # type: ignore[index]
        known = known and one.low is not None
        low, high = (one.low or one.median, one.high or one.median)[:: 1 if power > 0 else -1]
        for end, number in (("low", low), ("median", one.median), ("high", high)):
            ends[end] += power * math.log(number)
    low, median, high = (math.exp(min(ends[end], _LARGEST)) for end in ("low", "median", "high"))
    return Spread(median, low if known else None, high if known else None)


def _spread(one: Estimate) -> Spread:
    return Spread(one.median, one.low, one.high)


def _mean(numbers: Sequence[tuple[float | None, float]]) -> float | None:
    if any(number is None for number, _ in numbers):
        return None
    return math.exp(math.fsum(weight * math.log(number) for number, weight in numbers if number is not None))


def _median(one: Estimate) -> float | None:
    return one.median


def _low(one: Estimate) -> float | None:
    return one.low


def _high(one: Estimate) -> float | None:
    return one.high
