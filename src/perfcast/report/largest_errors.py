"""Largest errors of a predictor, each with its probable reason by stated rules, and errors by product release."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.evaluation.run_predictions import interval_width, is_covered
from perfcast.report.report_context import ENTITY, NAME, WHEN, Rows
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
        mine = evaluation.points[
            (evaluation.points["split"] == split) & (evaluation.points["predictor"] == predictor)
        ].copy()
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


_MIN_ROWS = 5
_QUANTILES = 0.1, 0.9
_ROUND = (5, 10, 20, 30, 40, 50, 75, 100, 200)


@dataclass(frozen=True)
class ReleaseError:
    """Errors of one family on one forward split.

    `seen` counts its training rows. Units: mean_error, mape, low, median and high in % of the measured score.
    """

    split: str
    family: str
    vendor: str
    first: str
    seen: int
    rows: int
    entities: int
    mean_error: float
    mape: float
    low: float
    median: float
    high: float
    coverage: float
    width: float


def release_errors(evaluation: Evaluation, rows: Rows, predictor: str) -> dict[str, list[ReleaseError]]:
    """Return, by forward split, new families first, then by the date of the first result; empty without such splits.

    A family is new where the training rows have none of its results.
    """
    families = [name for name in evaluation.lineage_slices if name in rows.slices][:1]
    if not families:
        return {}
    by_split = {}
    for split in evaluation.ranked_splits:
        points = evaluation.points[
            (evaluation.points["split"] == split) & (evaluation.points["predictor"] == predictor)
        ]
        if points.empty or not rows.is_forward(split):
            continue
        lines = [line for name in families for line in _lines(evaluation, rows, points, name)]
        if lines:
            by_split[split] = sorted(lines, key=lambda line: (line.seen > 0, line.first, line.family))
    return by_split


def axis_limit(lines: Sequence[ReleaseError]) -> int:
    """Return the limit of the axis of the bars, a round number of % that covers nine in ten of them."""
    ends = sorted(max(abs(line.low), abs(line.high)) for line in lines)
    covered_end = ends[int(np.ceil(0.9 * (len(ends) - 1)))]
    return next(round_number for round_number in _ROUND if round_number >= min(covered_end, _ROUND[-1]))


def axis_position(error: float, limit: int) -> float:
    """Return the position of an error on an axis from -100 to 100, clipped to its ends."""
    return round(100 * max(-1.0, min(1.0, error / limit)), 1)


def _lines(evaluation: Evaluation, rows: Rows, points: pd.DataFrame, name: str) -> list[ReleaseError]:
    """Return one line per value of a slice that has enough test rows."""
    split = str(points["split"].iloc[0])
    counts = rows.count_training_rows(split, rows.slices[name])
    vendors = evaluation.vendor_slices[:1]
    joined = points.assign(
        family=rows.slices.loc[points["row"], name].to_numpy(),
        vendor=rows.slices.loc[points["row"], vendors[0]].to_numpy() if vendors else "",
        entity=rows.names.loc[points["row"], ENTITY].to_numpy(),
        when=rows.names.loc[points["row"], WHEN].to_numpy(),
        seen=counts.reindex(points["row"]).to_numpy(),
        error=100 * (points["predicted"].astype(float) / points["measured"].astype(float) - 1),
    )
    lines = []
    for family, part in joined.groupby("family", sort=True):
        if part["row"].nunique() < _MIN_ROWS:
            continue
        low, median, high = part["error"].quantile([_QUANTILES[0], 0.5, _QUANTILES[1]])
        lines.append(
            ReleaseError(
                split=split,
                family=str(family),
                vendor=str(part["vendor"].mode().iloc[0]) if part["vendor"].notna().any() else "",
                first=f"{part['when'].min():%Y-%m}",
                seen=int(part["seen"].min()),
                rows=int(part["row"].nunique()),
                entities=int(part["entity"].nunique()),
                mean_error=float(part["error"].mean()),
                mape=float(part["error"].abs().mean()),
                low=float(low),
                median=float(median),
                high=float(high),
                coverage=100 * float(np.mean(is_covered(part))),
                width=float(np.mean(interval_width(part["half_width"].to_numpy(dtype=float)))),
            )
        )
    return lines
