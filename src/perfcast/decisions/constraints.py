"""Constraints on predicted scores, such as `SPECrate2017_int_base >= 1500`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.prediction import Estimate
from perfcast.uncertainty.conformal import outputs_of
from perfcast.uncertainty.threshold_probability import probability_at_least
from perfcast.utils.errors import UserError

_FORM = re.compile(r"\s*(?P<output>[^<>=]+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<number>\S+)\s*")


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

    def __str__(self) -> str:
        return f"{self.output.task} {self.sign} {self.threshold:g}"

    def probability(self, estimate: Estimate, champion: Champion) -> float:
        """Return the probability that the machine of an estimate keeps the bound, see `probability_at_least`."""
        if champion.calibrated is None or estimate.high is None:
            raise UserError("--target needs a champion with intervals", "this one has no calibration")
        quantiles = champion.calibrated.calibration.quantiles
        calibrated = str(outputs_of(pd.Series([self.output.task]), self.output.target)[0])
        errors = quantiles.get(calibrated, quantiles[""])
        at_least = probability_at_least(self.threshold, estimate.median, estimate.high, estimate.level, errors)
        return at_least if self.sign.startswith(">") else 1 - at_least


def read_constraints(texts: Sequence[str], champion: Champion) -> tuple[Constraint, ...]:
    """Read `TASK[.TARGET] SIGN NUMBER`, the sign one of >=, >, <=, <. Raises: UserError for any other text."""
    return tuple(_read_constraint(text, champion) for text in texts)


def _read_constraint(text: str, champion: Champion) -> Constraint:
    match = _FORM.fullmatch(text)
    if not match:
        raise UserError("--target must be TASK >= NUMBER, such as 'CINT2017rate >= 1500'", f"it is {text[:80]!r}")
    try:
        threshold = float(match["number"])
    except ValueError:
        threshold = math.nan
    if not (math.isfinite(threshold) and threshold > 0):
        raise UserError("the number of --target must be a positive one", f"{text[:80]!r} has {match['number'][:40]!r}")
    return Constraint(read_output(match["output"], champion, "--target"), match["sign"], threshold)


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
