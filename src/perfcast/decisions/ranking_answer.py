"""Requests and answers of rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import pandas as pd

from perfcast.decisions.cost_rates import PRICE_ALONE, CostRates
from perfcast.decisions.criteria import Constraint, Criterion, Output
from perfcast.inference.prediction import OK, REFUSED, Answer, name_carried

SURE = 0.5
"""Least probability of the targets above the line, where the user gives none."""


@dataclass(frozen=True)
class Ranked:
    """One candidate with its rank.

    `probabilities` are those of the targets, in their order; the probability of all targets together is between
    `joint_probability_min` and `joint_probability_max`, whatever the correlation of their errors. `value` is that of
    the criterion, `trust` the lowest one of its predictions. Units: `watts` W, `price` as given, `score` that
    of its tasks.
    `cost` is that of all years of use (see `CostRates`), `cost_per_score_year` it over the score and the years.
    `sure` is whether all targets are met with the asked probability, None without targets. `first_share` is the share
    of draws of all scores, their errors correlated, in which the candidate is the first of those that meet the targets;
    None for the others, and where fewer than two are left. `carried` has the columns of its file that nothing reads.
    """

    rank: int
    line: int
    name: str
    machine: str
    score: float
    score_low: float | None
    score_high: float | None
    probabilities: tuple[float, ...]
    joint_probability_min: float | None
    joint_probability_max: float | None
    sure: bool | None
    watts: float | None
    watts_assumed: bool
    price: float | None
    value: float
    value_low: float | None
    value_high: float | None
    trust: str
    cost: float | None = None
    cost_per_score_year: float | None = None
    first_share: float | None = None
    carried: Mapping[str, str | float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class RefusedCandidate:
    """Candidate that cannot be used, and the reason."""

    line: int
    name: str
    message: str
    carried: Mapping[str, str | float | None] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Ranking(Answer):
    """Candidates, the best first, with the criterion; `refused` ones have no rank."""

    dataset: str
    champion: str
    preset: str
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
    refused: tuple[RefusedCandidate, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per candidate, the best first, the refused ones last."""
        rows: list[dict[str, object]] = []
        for candidate in self.candidates:
            row = asdict(candidate)
            shares = zip(self.targets, row.pop("probabilities"), strict=True)
            by_target = {f"probability of {target}": share for target, share in shares}
            rows.append({**row, **by_target, "status": OK, "message": ""})
        rows += [{**asdict(candidate), "status": REFUSED} for candidate in self.refused]
        listed: list[Ranked | RefusedCandidate] = [*self.candidates, *self.refused]
        for row, each in zip(rows, listed, strict=True):
            del row["carried"]
            row.update(name_carried(each.carried, (*Ranked.__dataclass_fields__, "status", "message")))
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class RankingRequest:
    """Criterion and constraints of a ranking; candidates that keep them with less than `sure` stand below a line."""

    criterion: Criterion
    weights: Mapping[Output, float]
    constraints: tuple[Constraint, ...] = ()
    sure: float = SURE
    rates: CostRates = PRICE_ALONE
