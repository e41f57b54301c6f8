"""Constraints on predicted scores, and the criterion that ranks candidates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.machine_fields import read_number
from perfcast.inference.machine_files import PRICE, WATTS
from perfcast.inference.prediction import DerivedValue, Estimate
from perfcast.inference.rules import DerivedOutput
from perfcast.uncertainty.conformal import outputs_of, probability_at_least
from perfcast.utils.errors import UserError

_FORM = re.compile(r"\s*(?P<output>[^<>=]+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<number>\S+(?:\s+[a-z/]+)?)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Output:
    """One predicted quantity: a task in one of its targets."""

    task: str
    target: str

    @classmethod
    def of(cls, estimate: Estimate) -> Output:
        """Return the output of an estimate."""
        return cls(estimate.task, estimate.target)


@dataclass(frozen=True)
class Constraint:
    """Bound of a score. Units: `threshold` in those of the target; `sign` is one of >=, >, <=, <."""

    output: Output
    sign: str
    threshold: float

    def describe(self, champion: Champion) -> str:
        """Return the bound in words."""
        return f"{champion.rules.task_titles.get(self.output.task, self.output.task)} {self.sign} {self.threshold:g}"

    def probability(self, estimate: Estimate, champion: Champion) -> float:
        """Return the probability that the machine of an estimate keeps the bound, see `probability_at_least`."""
        if champion.calibrated is None or estimate.low is None or estimate.high is None:
            raise UserError("--target needs a champion with intervals", "this one has no calibration")
        quantiles = champion.calibrated.calibration.quantiles
        calibrated = str(outputs_of(pd.Series([self.output.task]), self.output.target)[0])
        errors = quantiles.get(calibrated, quantiles[""])
        # intervals of several backtests are centered at their bias, so the middle is the median of the distribution
        middle = math.sqrt(estimate.low * estimate.high)
        at_least = probability_at_least(self.threshold, middle, estimate.high, estimate.level, errors)
        return at_least if self.sign.startswith(">") else 1 - at_least


def read_constraints(texts: Sequence[str], champion: Champion) -> tuple[Constraint, ...]:
    """Read `TASK[.TARGET] SIGN NUMBER`, the sign one of >=, >, <=, <. Raises: UserError for any other text."""
    return tuple(_read_constraint(text, champion) for text in texts)


def _read_constraint(text: str, champion: Champion) -> Constraint:
    match = _FORM.fullmatch(text)
    if not match:
        task = next(iter(sorted(champion.typical_rows)), "TASK")
        form = "TASK <= NUMBER" if champion.rules.lower_is_better else "TASK >= NUMBER"
        example = f"{task} {form.split()[1]} 100"
        raise UserError(f"--target must be {form}, such as {example!r}", f"it is {text[:80]!r}")
    output = read_output(match["output"], champion, "--target")
    units = {column.name: column.unit for column in champion.reference_data.measured.columns}
    try:
        threshold = read_number(match["number"], units.get(output.target, ""))
    except ValueError:
        threshold = math.nan
    if not (math.isfinite(threshold) and threshold > 0):
        raise UserError("the number of --target must be a positive one", f"{text[:80]!r} has {match['number'][:40]!r}")
    return Constraint(output, match["sign"], threshold)


def read_output(text: str, champion: Champion, option: str) -> Output:
    """Read `TASK` or `TASK.TARGET`. Raises: UserError for an unknown task, or when its target is ambiguous."""
    names = champion.task_names
    task, target = names.find(text), ""
    if task is None and "." in text:
        before, _, target = text.rpartition(".")
        task = names.get(before, option)
    task = task or names.get(text, option)
    known = champion.targets_of(task)
    if target and target not in known:
        raise UserError(f"a target of {task} must be one of {', '.join(known)}", f"{option} names {target[:40]!r}")
    if not target and len(known) > 1:
        requirement = f"{option} must name the target of {task}"
        raise UserError(requirement, f"it has {', '.join(known)}", f"write {task}.{known[0]}")
    return Output(task, target or known[0])


SCORE, PROBABILITY, COST = "score", "probability", "cost"
_WORDS = {"score": SCORE, "watt": WATTS, "watts": WATTS, "price": PRICE, "cost": COST, "probability": PROBABILITY}
_MAX_WORDS = 8
_MAX_LOGARITHM = 700.0
"""Largest logarithm of a value that a floating-point number holds."""
_OPERATOR = re.compile(r"\s*([*/])\s*")


Factor = str | Output | DerivedOutput
"""Factor of a criterion."""


@dataclass(frozen=True)
class Criterion:
    """Product of powers: `score/watt` has the exponents 1 and -1. Keys: the words, outputs, or derived ones.

    `ascending`: whether a lower value is better, such as that of `price/score`.
    """

    text: str
    exponents: Mapping[Factor, int]
    ascending: bool


@dataclass(frozen=True)
class Spread:
    """Value with its interval; no interval without a calibration."""

    median: float
    low: float | None
    high: float | None


def read_criterion(text: str, champion: Champion) -> Criterion:
    """Read words joined by * and /: score, watts, price, cost, probability, a derived quantity, or a task.

    Exponents of a word add up, so `score*score/price` counts the score twice.
    Raises: UserError for any other text, and where one word of it is better when it rises, and another when it falls.
    """
    names = champion.task_names
    pieces = _OPERATOR.split(text.strip())
    if len(pieces) > 2 * _MAX_WORDS:
        raise UserError(f"--by must have at most {_MAX_WORDS} words", f"it has {len(pieces) // 2 + 1}")
    exponents: dict[Factor, int] = {}
    typed: dict[Factor, str] = {}
    derived = {each.name: each for each in champion.rules.derived}
    for position in range(0, len(pieces), 2):
        word = pieces[position].strip()
        if not word:
            raise UserError("--by must be words joined by * and /, such as score/watt", f"it is {text[:80]!r}")
        factor: Factor | None = derived.get(word.lower()) or _WORDS.get(word.lower())
        if factor is None:
            if names.find(word.rpartition(".")[0] or word) is None and names.find(word) is None:
                requirement = f"--by must name {', '.join([*sorted(set(_WORDS.values())), *derived])} or a task"
                raise UserError(requirement, f"it names {word[:40]!r}", f"tasks are {', '.join(names.tasks)}")
            factor = read_output(word, champion, "--by")
        sign = -1 if position and pieces[position - 1] == "/" else 1
        exponents[factor] = exponents.get(factor, 0) + sign
        typed.setdefault(factor, word)
    exponents = {factor: power for factor, power in exponents.items() if power}
    if not exponents:
        raise UserError("--by must not divide a word by itself", f"it is {text[:80]!r}")
    rewards = [power * _sense(factor, lower=champion.rules.lower_is_better) > 0 for factor, power in exponents.items()]
    wrong = next((factor for factor, reward in zip(exponents, rewards, strict=True) if reward != rewards[0]), None)
    if wrong is not None:
        raise _refuse_reward(text.strip(), wrong, exponents, typed, lower=champion.rules.lower_is_better)
    return Criterion(text.strip(), exponents, not rewards[0])


def _sense(factor: Factor, *, lower: bool) -> int:
    """Return 1 for a factor of which more is better, else -1; `lower` is whether less of a score is better."""
    if factor in (PRICE, WATTS, COST):
        return -1
    return 1 if factor == PROBABILITY or lower == isinstance(factor, DerivedOutput) else -1


def _refuse_reward(
    text: str, wrong: Factor, exponents: Mapping[Factor, int], typed: Mapping[Factor, str], *, lower: bool
) -> UserError:
    """Return the error of a criterion that would put a dominated candidate first, with the right criterion."""
    first = next(iter(exponents))
    signs = {each: "*" if _sense(each, lower=lower) == _sense(first, lower=lower) else "/" for each in exponents}
    right = "".join(f"{signs[each]}{typed[each]}" * abs(power) for each, power in exponents.items())[1:]
    change = "lower" if _sense(wrong, lower=lower) > 0 else "higher"
    fact = f"it is {text!r}{', and less is better in every score' if lower else ''}"
    return UserError(f"--by must not reward a {change} {typed[wrong]}", fact, f"write --by {right!r}")


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
        if not equals or not 0 < weight <= 1e9:  # a larger sum overflows
            requirement = "--weights must be TASK=NUMBER above 0, at most 1e9, joined by commas, such as CINT2017rate=2"
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
    criterion: Criterion,
    facts: Mapping[str, float],
    score: Spread,
    estimates: Mapping[Output, Estimate],
    derived: Mapping[str, DerivedValue] = MappingProxyType({}),
) -> Spread:
    """Return the value of a candidate; `facts` has the watts, price, cost and probability that the criterion needs.

    The interval is that of the scores in it, each at the end that is worse for the criterion, then at the better one.
    """
    logs = {"low": 0.0, "median": 0.0, "high": 0.0}
    has_interval = True
    for factor, power in criterion.exponents.items():
        if isinstance(factor, str) and factor in facts:
            logarithm = math.log(facts[factor]) if facts[factor] > 0 else -math.inf
            logs = {end: total + power * logarithm for end, total in logs.items()}
            continue
        spread: Spread | Estimate | DerivedValue = score
        if isinstance(factor, Output):
            spread = estimates[factor]
        elif isinstance(factor, DerivedOutput):
            spread = derived[factor.name]
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
