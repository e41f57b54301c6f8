"""What a machine must reach: `SPECrate2017_int_base >= 1500`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfcast.errors import UserError
from perfcast.forecasting import Champion, Estimate
from perfcast.forecasting.tasks import TaskNames, targets_of
from perfcast.uncertainty.conformal import outputs_of
from perfcast.uncertainty.threshold_probability import probability_at_least

_FORM = re.compile(r"\s*(?P<what>[^<>=]+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<number>\S+)\s*")


@dataclass(frozen=True)
class Question:
    """One task in one of its targets."""

    task: str
    target: str


@dataclass(frozen=True)
class Goal:
    """A score to reach: at least, or at most, the threshold. Units: those of the target."""

    question: Question
    sign: str
    threshold: float

    def __str__(self) -> str:
        return f"{self.question.task} {self.sign} {self.threshold:g}"

    def probability(self, estimate: Estimate, champion: Champion) -> float:
        """Return how probable it is that the machine of an estimate reaches this, see `probability_at_least`."""
        if champion.calibrated is None or estimate.high is None:
            raise UserError("targets need a champion that says how sure it is", "this one has no calibration")
        quantiles = champion.calibrated.calibration.quantiles
        question = _calibrated_as(self.question)
        own = quantiles.get(question, quantiles[""])
        reached = probability_at_least(self.threshold, estimate.median, estimate.high, estimate.level, own)
        return reached if self.sign.startswith(">") else 1 - reached


def read_goals(texts: Sequence[str], champion: Champion) -> tuple[Goal, ...]:
    """Read `TASK[.TARGET] SIGN NUMBER`, the sign one of >=, >, <=, <. Raises: UserError for anything else."""
    names = TaskNames(champion)
    return tuple(_goal(text, names, champion) for text in texts)


def _goal(text: str, names: TaskNames, champion: Champion) -> Goal:
    match = _FORM.fullmatch(text)
    if not match:
        raise UserError("--target must be TASK >= NUMBER, such as 'CINT2017rate >= 1500'", f"it is {text[:80]!r}")
    try:
        threshold = float(match["number"])
    except ValueError:
        threshold = math.nan
    if not (math.isfinite(threshold) and threshold > 0):
        raise UserError("the number of --target must be a positive one", f"{text[:80]!r} has {match['number'][:40]!r}")
    return Goal(read_question(match["what"], names, champion, "--target"), match["sign"], threshold)


def read_question(text: str, names: TaskNames, champion: Champion, where: str) -> Question:
    """Read `TASK` or `TASK.TARGET`. Raises: UserError for what is no task, or when its target must be said."""
    task, target = names.find(text), ""
    if task is None and "." in text:
        before, _, target = text.rpartition(".")
        task = names.get(before, where)
    task = task or names.get(text, where)
    known = targets_of(champion, task)
    if target and target not in known:
        raise UserError(f"a target of {task} must be one of {', '.join(known)}", f"{where} names {target[:40]!r}")
    if not target and len(known) > 1:
        requirement = f"{where} must say which target of {task} is meant"
        raise UserError(requirement, f"it has {', '.join(known)}", f"write {task}.{known[0]}")
    return Question(task, target or known[0])


def _calibrated_as(question: Question) -> str:
    import pandas as pd

    return str(outputs_of(pd.Series([question.task]), question.target)[0])
