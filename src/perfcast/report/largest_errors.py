"""Largest errors of a predictor, each with its probable reason by stated rules."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.report.report_context import ENTITY, NAME, Rows
from perfcast.schema.display_names import column_label
from perfcast.uncertainty.in_domain import AHEAD, RESULTS

SHOWN = 6
RULES = (
    "The reasons are probable, not proven. They follow four rules on the data alone. 1: the measured score differs "
    "from at least five results of the same machine (robust z above 3.5, and at least half of the error). 2: the "
    "training data has no result of this kind, or at most 100 where the usual kind has ten times as many. 3: the "
    "training data has at most three results of the machine where more are usual for the split. 4: the in-domain score "
    "is in the lowest tenth of the split."
)
_MIN_Z = 3.5
_MIN_EXPLAINED = 0.5
_LOW = 0.1
_FEW_RESULTS = 3
_RARE_COUNT, _RARE_SHARE = 100, 0.1
"""Training results below which a kind is rare, and their share of the usual number."""
_GROUP_TEXTS = {RESULTS: "its few results", AHEAD: "the time since the end of the data"}


@dataclass(frozen=True)
class LargeError:
    """Largest error of one machine.

    `similar` counts further rows of the machine with at least half of this error. Units: error in %.
    """

    split: str
    row: str
    target: str
    machine: str
    task: str
    measured: float
    predicted: float
    interval: tuple[float, float] | None
    inside: bool
    error: float
    in_domain: float
    similar: int
    reason: str


def largest_errors(evaluation: Evaluation, rows: Rows, predictor: str) -> dict[str, list[LargeError]]:
    """Return, by split, the machines with the largest errors of one predictor, each machine once.

    Errors are compared by their logarithm, so that half and double are equally wrong.
    """
    siblings = rows.siblings().set_index(["row", "target"])
    by_split = {}
    for split in evaluation.ranked_splits:
        mine = evaluation.tables["points"]
        mine = mine[(mine["split"] == split) & (mine["predictor"] == predictor)].copy()
        if mine.empty:
            continue
        mine["log"] = np.log(mine["predicted"].astype(float) / mine["measured"].astype(float))
        mine["machine"] = rows.names.loc[mine["row"], NAME].to_numpy()
        mine["rank"] = mine["in_domain_score"].rank(pct=True)
        size = mine["log"].abs()
        mine["similar"] = (size >= 0.5 * size.groupby(mine["machine"]).transform("max")).groupby(
            mine["machine"]
        ).transform("sum") - 1
        worst = mine.loc[size.sort_values(ascending=False, kind="stable").index].drop_duplicates("machine").head(SHOWN)
        facts = _RowFacts(evaluation, rows, split, siblings)
        by_split[split] = [_large_error(point, split, facts) for point in worst.to_dict("records")]
    return by_split


class _RowFacts:
    """Siblings of a row, and the number of training rows of its entity and kinds in its fold."""

    def __init__(self, evaluation: Evaluation, rows: Rows, split: str, siblings: pd.DataFrame) -> None:
        self.rows, self.siblings = rows, siblings
        self.entity = rows.count_training_rows(split, rows.names[ENTITY])
        self.usual = float(self.entity.median()) if len(self.entity) else 0.0
        self.kinds = {
            name: (rows.slices[name], rows.count_training_rows(split, rows.slices[name]))
            for name in [*evaluation.lineage_slices, *evaluation.other_slices]
            if name in rows.slices
        }

    def describe_rare_kind(self, row: str) -> str:
        """Return the first kind of a row with no or few training results, in words; "" where all kinds have enough."""
        for name, (values, counts) in self.kinds.items():
            if isinstance(values[row], str) and row in counts:
                kind, count = f"{column_label(name)} {values[row]}", int(counts[row])
                if count == 0:
                    return f"the training data has no result of {kind}"
                if count <= min(_RARE_COUNT, _RARE_SHARE * float(counts.median())):
                    return f"the training data has only {count} result{'' if count == 1 else 's'} of {kind}"
        return ""


def _large_error(point: Mapping[Hashable, Any], split: str, facts: _RowFacts) -> LargeError:
    log, half, predicted = float(point["log"]), float(point["half_width"]), float(point["predicted"])
    has_interval = not np.isnan(half)
    return LargeError(
        split=split,
        row=str(point["row"]),
        target=str(point["target"]),
        machine=str(point["machine"]),
        task=str(point["task"]),
        measured=float(point["measured"]),
        predicted=predicted,
        interval=(predicted * np.exp(-half), predicted * np.exp(half)) if has_interval else None,
        inside=has_interval and abs(log) <= half,
        error=100 * np.expm1(log),
        in_domain=float(point["in_domain_score"]),
        similar=int(point["similar"]),
        reason=_reason(point, facts),
    )


def _reason(point: Mapping[Hashable, Any], facts: _RowFacts) -> str:
    """Return the probable reasons of one error in words."""
    log, row = point["log"], point["row"]
    reasons = []
    key = (row, point["target"])
    if key in facts.siblings.index:
        sibling = facts.siblings.loc[key]
        # the prediction is too high where the measured score is below its siblings', and the other way round
        if abs(sibling["z"]) > _MIN_Z and -sibling["deviation"] * np.sign(log) > _MIN_EXPLAINED * abs(log):
            way = "below" if sibling["deviation"] < 0 else "above"
            reasons.append(
                f"the measured score is {abs(100 * np.expm1(sibling['deviation'])):.0f} % {way} the median of "
                f"{int(sibling['siblings']) + 1} results of the same {facts.rows.identity_words}"
            )
    count = facts.entity.get(row)
    if rare_kind := facts.describe_rare_kind(row):
        reasons.append(rare_kind)
    elif count is not None and count <= _FEW_RESULTS < facts.usual:
        results = "no result" if count == 0 else f"{count} result{'' if count == 1 else 's'}"
        reasons.append(
            f"the training data has {results} of this {facts.rows.entity_words}; {facts.usual:.0f} are usual"
        )
    group, rank = point["least_similar_group"], point["rank"]
    if rank <= _LOW and group:
        others = min(int(100 * (1 - rank)), 99)
        cause = _GROUP_TEXTS.get(group, f"its {group}")
        reasons.append(f"less similar to the training data than {others} % of this split, above all by {cause}")
    if not reasons:
        reasons = ["no reason found in the data"]
        if abs(log) <= point["half_width"]:
            reasons = ["inside its interval: errors of this size are expected for such machines"]
    return "; ".join(reasons)
