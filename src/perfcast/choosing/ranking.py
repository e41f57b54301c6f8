"""Order candidates by what they give for what they take, with the probability that each meets its targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from perfcast.choosing.candidates import Candidate, split_candidates
from perfcast.choosing.goals import Goal, Question
from perfcast.choosing.measures import PRICE, PROBABILITY, WATTS, Measure, score, value
from perfcast.describing.files import Entry
from perfcast.errors import UserError
from perfcast.forecasting import Asked, Champion, Described, Estimate, MachineAnswer, describe
from perfcast.forecasting.batch import forecast_in_batches
from perfcast.forecasting.completing import complete
from perfcast.forecasting.knowledge import completion_of
from perfcast.forecasting.own_measurements import OwnMeasurements
from perfcast.intervals.reaching import all_together
from perfcast.schema import Tag

PLAIN = Asked(neighbours=0, explain=False)


@dataclass(frozen=True)
class Ranked:
    """One candidate at its place.

    `probabilities` are those of the targets, in their order; all are met together with a probability from
    `together_least` to `together_most`, whatever ties the errors of one machine. `value` is what it was ordered by.
    `support` is the least of its forecasts' supports. Units: `watts` W, `price` as given, `score` that of its tasks.
    """

    rank: int
    line: int
    name: str
    machine: str
    score: float
    score_low: float | None
    score_high: float | None
    probabilities: tuple[float, ...]
    together_least: float | None
    together_most: float | None
    sure: bool | None
    watts: float | None
    watts_assumed: bool
    price: float | None
    value: float
    value_low: float | None
    value_high: float | None
    support: float | None
    unlike: str | None


@dataclass(frozen=True)
class Ranking:
    """The candidates, the best first, and what they were ordered by."""

    dataset: str
    champion: str
    schedule: str
    by: str
    ascending: bool
    level: float
    weights: Mapping[str, float]
    unit: str
    targets: tuple[str, ...]
    sure: float | None
    candidates: tuple[Ranked, ...]
    notes: tuple[str, ...]
    kind: str = "estimates, not official results"

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, ready for JSON."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per candidate, the best first."""
        rows = []
        for one in self.candidates:
            row = asdict(one)
            shares = row.pop("probabilities")
            rows.append({**row, **{f"probability of {text}": p for text, p in zip(self.targets, shares, strict=True)}})
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class Wish:
    """What a ranking is asked for: see `goals`, `measures`; candidates that are less sure than `sure` come last."""

    measure: Measure
    weights: Mapping[Question, float]
    goals: tuple[Goal, ...] = ()
    sure: float | None = None
    ascending: bool = False


def rank(
    entries: Sequence[Entry],
    champion: Champion,
    wish: Wish,
    asked: Asked = PLAIN,
    *,
    own: OwnMeasurements | None = None,
    progress: bool = False,
) -> Ranking:
    """Order candidates by the wish's measure; of equal ones the higher score, then the earlier line comes first.

    With measurements of one's `own` every forecast is corrected, see `forecast`.
    Where it holds `probability`, that is the least probability that all targets are met together.
    Raises: UserError when a candidate cannot be used, or lacks the price or the watts that it is to be ordered by.
    """
    machines, candidates = split_candidates(entries)
    described = describe(machines, champion)
    task = champion.knowledge.measured.column_of(Tag.TASK)
    if described.frame[task].notna().any():
        line = described.frame.index[described.frame[task].notna()][0]
        remedy = "leave it out; --target and --weights say which tasks count"
        raise UserError("candidates must name no task", f"machine {line} names one in {task}", remedy)
    if wish.sure is not None and not wish.goals:
        raise UserError("--sure needs a target", "there is no --target")
    watts = _watts(described, candidates, champion, asked)
    plain = replace(asked, neighbours=0, explain=False)
    answer = forecast_in_batches(described, champion, plain, own, progress=progress)
    found = [_ranked(one, candidate, watts, wish, champion) for one, candidate in zip(answer, candidates, strict=True)]
    sign = 1 if wish.ascending else -1
    found.sort(key=lambda one: (one.sure is False, sign * one.value, -one.score, one.line))
    units = {one.unit for machine in answer for one in machine.estimates if _question(one) in wish.weights}
    return Ranking(
        dataset=champion.dataset,
        champion=champion.name,
        schedule=champion.schedule,
        by=wish.measure.text,
        ascending=wish.ascending,
        level=asked.level,
        weights={_named(question, wish.weights): weight for question, weight in wish.weights.items()},
        unit=units.pop() if len(units) == 1 else "",
        targets=tuple(map(str, wish.goals)),
        sure=wish.sure,
        candidates=tuple(replace(one, rank=place) for place, one in enumerate(_told_apart(found), start=1)),
        notes=(*_notes(found, described, wish, champion), *(own.notes if own else ())),
    )


def _watts(
    described: Described, candidates: Sequence[Candidate], champion: Champion, asked: Asked
) -> dict[int, tuple[float, bool]]:
    """Return the watts of every candidate that has any, by line, and whether they were assumed."""
    found = {one.line: (one.watts, False) for one in candidates if one.watts is not None}
    rest = described.frame.drop(index=list(found))
    module = completion_of(champion.dataset)
    if module is None or rest.empty:
        return found
    one_task = rest.assign(**{champion.knowledge.measured.column_of(Tag.TASK): next(iter(champion.typical))})
    completed = complete(one_task, champion.knowledge, champion.donors if asked.assume else None).frame
    product = completed[list(module.WATTS)].prod(axis=1, skipna=False).dropna()
    return {**found, **{int(line): (float(watts), True) for line, watts in product.items()}}  # type: ignore[call-overload]


def _ranked(
    machine: MachineAnswer,
    candidate: Candidate,
    watts: Mapping[int, tuple[float, bool]],
    wish: Wish,
    champion: Champion,
) -> Ranked:
    estimates = {_question(one): one for one in machine.estimates}
    shares = tuple(goal.probability(estimates[goal.question], champion) for goal in wish.goals)
    least, most = all_together(shares) if shares else (None, None)
    own, assumed = watts.get(machine.line, (None, False))
    facts = {WATTS: own, PRICE: candidate.price, PROBABILITY: least}
    for word, fact in facts.items():
        if fact is None and wish.measure.needs(word):
            raise _lacking(word, wish.measure.text, candidate)
    mean = score(estimates, wish.weights)
    worth = value(wish.measure, {word: fact for word, fact in facts.items() if fact is not None}, mean, estimates)
    supports = [(one.support, one.unlike) for one in estimates.values() if one.support is not None]
    support, unlike = min(supports, key=lambda pair: pair[0]) if supports else (None, None)
    return Ranked(
        rank=0,
        line=machine.line,
        name=candidate.name or machine.machine,
        machine=machine.machine,
        score=mean.median,
        score_low=mean.low,
        score_high=mean.high,
        probabilities=shares,
        together_least=least,
        together_most=most,
        sure=None if wish.sure is None or least is None else least >= wish.sure,
        watts=own,
        watts_assumed=assumed,
        price=candidate.price,
        value=worth.median,
        value_low=worth.low,
        value_high=worth.high,
        support=support,
        unlike=unlike,
    )


def _lacking(word: str, by: str, candidate: Candidate) -> UserError:
    if word == PROBABILITY:
        return UserError(f"--by {by} needs a target", "there is no --target", "such as 'CINT2017rate >= 1500'")
    called = f"candidate {candidate.line}" + (f" ({candidate.name})" if candidate.name else "")
    remedy = "add it in the column price"
    if word == WATTS:
        remedy = "what its processors draw is unknown, too: add the column watts, or tdp"
    return UserError(f"--by {by} needs the {word} of every candidate", f"{called} has none", remedy)


def _told_apart(found: Sequence[Ranked]) -> list[Ranked]:
    """Add the line to names that several candidates have."""
    counts = pd.Series([one.name for one in found]).value_counts()
    return [replace(one, name=f"{one.name} (line {one.line})") if counts[one.name] > 1 else one for one in found]


def _notes(found: Sequence[Ranked], described: Described, wish: Wish, champion: Champion) -> tuple[str, ...]:
    notes = [f"{name}: {note}" for name, note in _told(found, described)]
    assumed = sum(one.watts_assumed for one in found)
    module = completion_of(champion.dataset)
    if assumed and module:
        which = "" if assumed == len(found) else " where marked ~"
        notes.append(f"watts assumed{which}: {module.WATTS_ARE}")
    if len(wish.goals) > 1:
        notes.append(
            "all targets together: the errors of one machine go together, nobody knows how closely; the two numbers "
            "bound the probability whatever ties them, and the lower one is what counts"
        )
    if wish.sure is not None and any(one.sure is False for one in found):
        last = sum(one.sure is False for one in found)
        notes.append(f"{last} of {len(found)} candidates meet the targets with less than {wish.sure:g}: they come last")
    return tuple(notes)


def _told(found: Sequence[Ranked], described: Described) -> list[tuple[str, str]]:
    return [(one.name, note) for one in found for note in described.notes.get(one.line, ())]


def _question(one: Estimate) -> Question:
    return Question(one.task, one.target)


def _named(question: Question, among: Mapping[Question, float]) -> str:
    alone = sum(one.task == question.task for one in among) == 1
    return question.task if alone else f"{question.task}.{question.target}"
