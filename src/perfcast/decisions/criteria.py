"""Criteria of a ranking: constraints on scores, a quantity to order by; offers of candidates, and their cost."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.machine_fields import read_number
from perfcast.inference.machine_files import DISK, EXTRAS, NAME, NETWORK, PRICE, RACKS, WATTS, MachineEntry, tidy_text
from perfcast.inference.name_lookup import TaskNames, list_tasks
from perfcast.inference.prediction import DerivedValue, Estimate
from perfcast.inference.rules.presentation import DerivedOutput
from perfcast.inference.suites import Suites
from perfcast.uncertainty.conformal import probability_at_least
from perfcast.uncertainty.levels import outputs_of
from perfcast.utils.errors import UserError

_FORM = re.compile(r"\s*(?P<output>[^<>=]+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<number>\S+(?:\s+[a-z/]+)?)\s*", re.IGNORECASE)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:[\s,'’]\d{3})+")
_POINTS = re.compile(r"\W*([1-9]\d{0,2}(?:\.\d{3})+)\W*")
"""Three digits after every point: thousands to some, decimals to others."""
SCORE, LOW, COST = "score", "low", "cost"
EXPENSES = (PRICE, COST, WATTS)
"""What a quantity may be divided by."""
_WORDS = {"watt": WATTS, **{word: word for word in (SCORE, LOW, *EXPENSES)}}
HOURS_PER_YEAR = 8766
_SURE = 0.5
"""Least probability of the targets above the line, where the user gives none."""
MAX_NAME_LETTERS = 80
_SMALLEST, _LARGEST = 1e-6, 1e12
"""Bounds of prices and watts: their powers and ratios stay finite."""


class Output(NamedTuple):
    """One predicted quantity: a task in one of its targets."""

    task: str
    target: str

    @classmethod
    def of(cls, estimate: Estimate) -> Output:
        """Return the output of an estimate."""
        return cls(estimate.task, estimate.target)


def error_quantiles(champion: Champion, output: tuple[str, str]) -> list[float]:
    """Return the quantiles of the errors of backtests of an output of a calibrated champion, its task and target."""
    if champion.calibrated is None:
        raise ValueError(f"{champion.dataset} has no calibration")
    task, target = output
    quantiles = champion.calibrated.calibration.quantiles
    return quantiles.get(str(outputs_of(pd.Series([task]), target)[0]), quantiles[""])


@dataclass(frozen=True)
class Constraint:
    """Bound of a score. Units: `threshold` in those of the target; `sign` is one of >=, >, <=, <."""

    output: Output
    sign: str
    threshold: float

    def describe(self, suites: Suites) -> str:
        """Return the bound in words."""
        title = suites.rules.names.task_titles.get(self.output.task, self.output.task)
        return f"{title} {self.sign} {self.threshold:g}"

    def probability(self, estimate: Estimate, suites: Suites) -> float:
        """Return the probability that the machine of an estimate keeps the bound, see `probability_at_least`."""
        if estimate.low is None or estimate.high is None:
            raise UserError("--target needs a champion with intervals", "this one has no calibration")
        errors = error_quantiles(suites.champion_of(estimate.task), self.output)
        # intervals of several backtests are centered at their bias, so the middle is the median of the distribution
        middle = math.sqrt(estimate.low * estimate.high)
        at_least = probability_at_least(self.threshold, middle, estimate.high, estimate.level, errors)
        return at_least if self.sign.startswith(">") else 1 - at_least


@dataclass(frozen=True)
class Limit:
    """Largest watts or racks of a candidate: `word` is one of both. Units: W."""

    word: str
    sign: str
    most: float

    def describe(self) -> str:
        """Return the limit in words."""
        return f"{self.word} {self.sign} {self.most:g}"

    def check(self, candidate: Candidate, name: str) -> None:
        """Raise UserError where a candidate is beyond the limit, or does not say."""
        value = {WATTS: candidate.watts, RACKS: candidate.racks}[self.word]
        requirement = f"{self.word} must be {self.sign} {self.most:g}"
        if value is None:
            raise UserError(requirement, f"{name} has none", f"add the column {self.word}")
        if value > self.most or (self.sign == "<" and value == self.most):
            raise UserError(requirement, f"{name} has {value:g}")


def _read_limit(text: str) -> Limit | None:
    """Return the limit of `watts <= NUMBER` or `racks <= NUMBER`, None for a target of a score."""
    match = _FORM.fullmatch(text)
    word = match["output"].lower() if match else ""
    if match is None or word not in (WATTS, RACKS):
        return None
    if match["sign"] not in ("<", "<="):
        raise UserError(f"a target of {word} must be a limit", f"it is {text[:80]!r}", f"write '{word} <= NUMBER'")
    most = _read_positive(match["number"], word, "--target")
    return None if most is None else Limit(word, match["sign"], most)


def read_constraint(text: str, suites: Suites) -> Constraint:
    """Read `TASK[.TARGET] SIGN NUMBER`, the sign one of >=, >, <=, <. Raises: UserError for any other text."""
    match = _FORM.fullmatch(text)
    if not match:
        task = next(iter(sorted(suites.tasks)), "TASK")
        sign = "<=" if suites.rules.presentation.lower_is_better else ">="
        raise UserError(
            f"--target must be TASK {sign} NUMBER, such as {f'{task} {sign} 100'!r}", f"it is {text[:80]!r}"
        )
    output = read_output(match["output"], suites, "--target")
    units = {column.name: column.unit for column in suites.first.reference_data.measured.columns}
    try:
        unit = suites.rules.presentation.task_units.get(output.task, units.get(output.target, ""))
        threshold = read_number(match["number"], unit)
    except ValueError:
        threshold = math.nan
    if not (math.isfinite(threshold) and threshold > 0):
        raise UserError("the number of --target must be a positive one", f"{text[:80]!r} has {match['number'][:40]!r}")
    return Constraint(output, match["sign"], threshold)


def choose_by_targets(texts: Sequence[str], suites: Suites) -> Suites:
    """Return the suite whose tasks all targets name, all suites where they name tasks of several."""
    outputs = [match["output"] for text in texts if (match := _FORM.fullmatch(text)) and not _read_limit(text)]
    for champion in suites if outputs else ():
        if all(_names_task(output, champion.task_names) for output in outputs):
            return Suites(champion)
    return suites


def read_output(text: str, suites: Suites, option: str) -> Output:
    """Read `TASK` or `TASK.TARGET`. Raises: UserError for an unknown task, or when its target is ambiguous."""
    names = suites.task_names
    task, target = names.find(text), ""
    if task is None and "." in text:
        before, _, target = text.rpartition(".")
        task = names.get(before, option)
    task = task or names.get(text, option)
    known = suites.targets_of[task]
    if target and target not in known:
        raise UserError(f"a target of {task} must be one of {', '.join(known)}", f"{option} names {target[:40]!r}")
    if not target and len(known) > 1:
        requirement = f"{option} must name the target of {task}"
        raise UserError(requirement, f"it has {', '.join(known)}", f"write {task}.{known[0]}")
    return Output(task, target or known[0])


Quantity = str | Output | DerivedOutput
"""What candidates are ordered by: a word, a task, or a derived quantity."""


@dataclass(frozen=True)
class RefusedCandidate:
    """Candidate that cannot be used, and the reason."""

    line: int
    name: str
    message: str
    carried: Mapping[str, str | float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Criterion:
    """Quantity that candidates are ordered by; `per` is the expense that it is divided by, "" for none.

    `ascending`: whether less is better.
    """

    text: str
    quantity: Quantity
    per: str
    ascending: bool

    @property
    def expenses(self) -> list[str]:
        """The expenses that every candidate must have."""
        return [word for word in (self.quantity, self.per) if isinstance(word, str) and word in EXPENSES]


def read_criterion(text: str, suites: Suites) -> Criterion:
    """Read `score`, `low`, a task or a derived quantity, each alone or over an expense, or one of `EXPENSES`.

    `low` is the end of the score's interval that is worse.
    Raises: UserError for any other text, and for a quantity over an expense of which less is better.
    """
    typed = text.strip()
    quantity, per = _read_quantity(typed, suites), ""
    if quantity is None:
        head, _, tail = typed.rpartition("/")
        per = _WORDS.get(tail.strip().lower(), "")
        if per in EXPENSES:
            quantity = _read_quantity(head.strip(), suites)
    if quantity is None or (per and quantity in EXPENSES):
        words = [SCORE, LOW, *EXPENSES, *(each.name for each in suites.rules.presentation.derived)]
        requirement = f"--by must be {', '.join(words)} or a task, or one of them over {', '.join(EXPENSES)}"
        raise UserError(requirement, f"it is {text[:80]!r}", f"tasks are {list_tasks(suites.task_names.tasks)}")
    is_derived = isinstance(quantity, DerivedOutput)
    ascending = quantity in EXPENSES or suites.rules.presentation.lower_is_better != is_derived
    if per and ascending:  # a dearer candidate would be better
        requirement = f"--by must not divide what is better the less it is by the {per}"
        raise UserError(requirement, f"it is {text[:80]!r}", f"write --by {head.strip()!r}")
    return Criterion(typed, quantity, per, ascending)


def _read_quantity(text: str, suites: Suites) -> Quantity | None:
    """Return what a word of `--by` names, None for nothing."""
    derived = {each.name: each for each in suites.rules.presentation.derived}
    quantity = derived.get(text.lower()) or _WORDS.get(text.lower())
    if quantity is None and _names_task(text, suites.task_names):
        return read_output(text, suites, "--by")
    return quantity


def _names_task(word: str, names: TaskNames) -> bool:
    """Return whether a word is `TASK` or `TASK.TARGET`."""
    return any(names.find(name) is not None for name in (word, word.rpartition(".")[0]))


class Spread(NamedTuple):
    """Value with its interval; no interval without a calibration."""

    median: float
    low: float | None
    high: float | None


def weighted_score(estimates: Mapping[Output, Estimate], weights: Mapping[Output, float]) -> Spread:
    """Return the weighted geometric mean of a machine's estimates.

    Its interval is the mean of theirs in logarithms, as if the errors of one machine were fully correlated.
    """

    def mean(end: str) -> float | None:
        numbers = [getattr(estimates[output], end) for output in weights]
        if None in numbers:
            return None
        pairs = zip(weights.values(), numbers, strict=True)
        return math.exp(math.fsum(weight * math.log(number) for weight, number in pairs))

    return Spread(mean("median") or 0.0, mean("low"), mean("high"))


def evaluate_criterion(
    criterion: Criterion,
    facts: Mapping[str, float],
    score: Spread,
    estimates: Mapping[Output, Estimate],
    derived: Mapping[str, DerivedValue],
) -> Spread:
    """Return the value of a candidate; `facts` has the expenses that the criterion needs."""
    quantity = criterion.quantity
    spread: Spread | Estimate | DerivedValue = score
    if isinstance(quantity, Output):
        spread = estimates[quantity]
    elif isinstance(quantity, DerivedOutput):
        spread = derived[quantity.name]
    elif quantity == LOW:
        worse = score.high if criterion.ascending else score.low
        if worse is None:
            raise UserError(f"--by {criterion.text} needs a champion with intervals", "this one has no calibration")
        spread = Spread(worse, None, None)
    elif quantity in EXPENSES:
        spread = Spread(*[facts[quantity]] * 3)
    divisor = facts[criterion.per] if criterion.per else 1.0
    low, high = (None if end is None else end / divisor for end in (spread.low, spread.high))
    return Spread(spread.median / divisor, low, high)


@dataclass(frozen=True)
class RankingRequest:
    """Criterion and constraints of a ranking; candidates that keep them with less than `sure` stand below a line.

    Candidates beyond one of the `limits` are refused.

    Units: `electricity_price` per kWh in the currency of prices, `years` of use around the clock.
    """

    criterion: Criterion
    weights: Mapping[Output, float]
    constraints: tuple[Constraint, ...] = ()
    sure: float = _SURE
    electricity_price: float = 0.0
    years: float = 1.0
    limits: tuple[Limit, ...] = ()

    def describe_cost(self) -> str:
        """Return one line with what the cost has."""
        price = self.electricity_price
        energy = f" + electricity at {price:g} per kWh for {self.years:g} years" if price else ""
        return f"cost: price{energy}; per score-year it is divided by the score and {self.years:g} years"

    def cost(self, price: float | None, watts: float | None) -> float | None:
        """Return the cost over all years, None where a fact that it needs is unknown."""
        if price is None or (self.electricity_price and watts is None):
            return None
        return price + (watts or 0.0) / 1000 * HOURS_PER_YEAR * self.years * self.electricity_price


def read_request(
    targets: Sequence[str],
    suites: Suites,
    *,
    by: str = "score",
    sure: float | None = None,
    electricity_price: float = 0.0,
    years: float = 1.0,
) -> RankingRequest:
    """Return the request of typed targets and a criterion; the score is that of all tasks of the targets, else of
    the criterion, else of all.

    Raises: UserError for a word that has no meaning, a number that cannot be, and for `sure` without targets.
    """
    for name, low, value in (("electricity-price", 0.0, electricity_price), ("years", 1e-3, years)):
        if not low <= value <= 1e9:
            rule = "0 or a positive number" if low == 0 else "a positive number"
            raise UserError(f"--{name} must be {rule}", f"it is {value:g}")
    limit_of = {text: _read_limit(text) for text in targets}
    constraints = tuple(read_constraint(text, suites) for text, limit in limit_of.items() if limit is None)
    limits = tuple(limit for limit in limit_of.values() if limit is not None)
    criterion = read_criterion(by, suites)
    named = [criterion.quantity] if isinstance(criterion.quantity, Output) else []
    outputs = list(dict.fromkeys(constraint.output for constraint in constraints)) or named
    if not outputs:
        outputs = [Output(task, target) for task in suites.tasks for target in suites.targets_of[task]]
    if COST in criterion.expenses and suites.rules.presentation.price_columns:
        raise UserError("--by must not name the cost where prices are per hour", f"it is {by!r}", "name the price")
    if sure is not None and not constraints:
        raise UserError("--sure needs a target", "there is no --target", "such as 'CINT2017rate >= 1500'")
    chosen = _SURE if sure is None else sure
    return RankingRequest(
        criterion, dict.fromkeys(outputs, 1 / len(outputs)), constraints, chosen, electricity_price, years, limits
    )


@dataclass(frozen=True)
class Candidate:
    """Facts of a candidate beside its machine: `cells` are numbers that its price or derived quantities need.

    `sizes` are those of `Presentation.find_sizes`. Units: `price` any currency, `watts` W, `disk` GB, `network` Gbit/s.
    """

    line: int
    name: str | None
    price: float | None
    watts: float | None
    racks: float | None = None
    disk: float | None = None
    network: float | None = None
    watts_assumed: bool = False
    cells: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)


_NUMBERS = (PRICE, WATTS, RACKS, DISK, NETWORK)
_UNITS = {WATTS: "W", DISK: "GB", NETWORK: "Gbit/s"}


def read_candidate(entry: MachineEntry) -> Candidate:
    """Return what an offer says beside its machine. Raises: UserError for a value that cannot be used."""
    texts: dict[str, str] = {}
    for extra, value in entry.carried.items():
        if extra not in EXTRAS and extra.strip().lower() in EXTRAS:
            fact = f"{entry.label} has {extra.strip().lower()} twice"
            raise UserError("a machine must give every field once", fact, "leave one of them out")
        if extra in EXTRAS and value is not None and not isinstance(value, (str, int, float)):
            fact = f"{entry.label} has {str(value)[:40]!r}"
            raise UserError(f"{extra} must be one value", fact, "write a text or a number")
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        texts[extra] = "" if missing else tidy_text(str(value))
    name = texts.get(NAME) or None
    if name is not None and len(name) > MAX_NAME_LETTERS:
        raise UserError(f"a name must be at most {MAX_NAME_LETTERS} letters", f"{entry.label} has {len(name)}")
    for word in _NUMBERS:
        if isinstance(entry.carried.get(word), str):
            texts[word] = join_thousands(texts[word], f"{word} of {entry.label}")
    price, watts, racks, disk, network = (_read_positive(texts.get(word), word, entry.label) for word in _NUMBERS)
    return Candidate(entry.line, name, price, watts, racks, disk, network)


def join_thousands(text: str, label: str) -> str:
    """Return a typed number without the separators of its thousands, as in 1,200 and 1 200.

    Raises: UserError for 1.200, which is 1200 to some readers and 1.2 to others.
    """
    if points := _POINTS.fullmatch(text):
        digits = points[1].replace(".", "")
        raise UserError(f"{label} must not have points between thousands", f"it is {text[:40]!r}", f"write {digits}")
    return re.sub(r"\D", "", text) if _THOUSANDS.fullmatch(text) else text


def _read_positive(text: str | None, name: str, label: str) -> float | None:
    if not text:
        return None
    unit = _UNITS.get(name, "")
    unit_text = f" in {unit}" if unit else " without a currency" if name == PRICE else ""
    fact = f"{label} has {text[:40]!r}"
    requirement = f"{name} must be a positive number{unit_text}"
    try:
        number = read_number(text, unit)
    except ValueError as error:
        raise UserError(requirement, fact, str(error)) from None
    if number <= 0:
        raise UserError(requirement, fact, "leave it empty if it is unknown")
    if not _SMALLEST <= number <= _LARGEST:
        raise UserError(f"{name} must be from {_SMALLEST:g} to {_LARGEST:g}{unit_text}", fact, "correct it")
    return number
