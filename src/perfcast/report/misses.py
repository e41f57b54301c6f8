"""The worst misses of a predictor on every question, each with its probable reason by stated rules."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.figures._slices import lineage_slices, other_slices
from perfcast.report.rows import ENTITY, NAME, Rows
from perfcast.uncertainty.in_domain import AHEAD, RESULTS

SHOWN = 6
RULES = (
    "The reasons are probable, not proven; they follow rules that look at the data alone: the measured score lies out "
    "of line with at least five results of the same machine (robust z beyond 3.5, and at least half of the error); "
    "training held nothing of its kind, or at most a hundred results where the usual kind has ten times as many; "
    "training held at most three results of the machine itself where more are usual for the question; its support is "
    "among the lowest tenth of the question."
)
_OUT_OF_LINE = 3.5
_EXPLAINED = 0.5
_LOW = 0.1
_FEW = 3
_RARE, _RARELY = 100, 0.1
"""Training results of a kind below which it counts as rare, where the usual kind has ten times as many."""
_UNLIKE = {RESULTS: "in having so few results", AHEAD: "in the time since the data's end"}


@dataclass(frozen=True)
class Miss:
    """One machine's largest error: numbers in the unit of the score, errors in %, the interval as (low, high)."""

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
    support: float
    alike: int
    reason: str


def worst_misses(evaluation: Evaluation, rows: Rows, predictor: str) -> dict[str, list[Miss]]:
    """Return, by question, the machines that one predictor misses by most, each once, with how many rows it misses so.

    Errors are compared by their logarithm, so that half and double are equally wrong.
    """
    siblings = rows.siblings().set_index(["row", "target"])
    found = {}
    for split in evaluation.questions:
        mine = evaluation.points[
            (evaluation.points["split"] == split) & (evaluation.points["predictor"] == predictor)
        ].copy()
        if mine.empty:
            continue
        mine["log"] = np.log(mine["predicted"].astype(float) / mine["measured"].astype(float))
        mine["machine"] = rows.names.loc[mine["row"], NAME].to_numpy()
        mine["rank"] = mine["support"].rank(pct=True)
        size = mine["log"].abs()
        mine["alike"] = (size >= 0.5 * size.groupby(mine["machine"]).transform("max")).groupby(
            mine["machine"]
        ).transform("sum") - 1
        worst = mine.loc[size.sort_values(ascending=False, kind="stable").index].drop_duplicates("machine").head(SHOWN)
        known = _Known(evaluation, rows, split, siblings)
        found[split] = [_miss(point, split, known) for point in worst.to_dict("records")]
    return found


class _Known:
    """What is known of a row: its siblings, and what the training part of its own fold held of its entity and kinds."""

    def __init__(self, evaluation: Evaluation, rows: Rows, split: str, siblings: pd.DataFrame) -> None:
        self.rows, self.siblings = rows, siblings
        self.entity = rows.known(split, rows.names[ENTITY])
        self.usual = float(self.entity.median()) if len(self.entity) else 0.0
        self.kinds = {
            name: (rows.slices[name], rows.known(split, rows.slices[name]))
            for name in [*lineage_slices(evaluation), *other_slices(evaluation)]
            if name in rows.slices
        }

    def little_known(self, row: str) -> str:
        """Return the first kind of a row that training held nothing or little of, in words; "" where it knew all."""
        for name, (values, counts) in self.kinds.items():
            if isinstance(values[row], str) and row in counts:
                kind, count = f"{name.replace('_', ' ')} {values[row]}", int(counts[row])
                if count == 0:
                    return f"training held no result of {kind}"
                if count <= min(_RARE, _RARELY * float(counts.median())):
                    return f"training held only {count} result{'' if count == 1 else 's'} of {kind}"
        return ""


def _miss(point: Mapping[Hashable, Any], split: str, known: _Known) -> Miss:
    log, half, predicted = float(point["log"]), float(point["half"]), float(point["predicted"])
    told = not np.isnan(half)
    return Miss(
        split=split,
        row=str(point["row"]),
        target=str(point["target"]),
        machine=str(point["machine"]),
        task=str(point["task"]),
        measured=float(point["measured"]),
        predicted=predicted,
        interval=(predicted * np.exp(-half), predicted * np.exp(half)) if told else None,
        inside=told and abs(log) <= half,
        error=100 * np.expm1(log),
        support=float(point["support"]),
        alike=int(point["alike"]),
        reason=_reason(point, known),
    )


def _reason(point: Mapping[Hashable, Any], known: _Known) -> str:
    """Return the probable reason of one miss in words."""
    log, row, told = point["log"], point["row"], []
    place = (row, point["target"])
    if place in known.siblings.index:
        one = known.siblings.loc[place]
        # the estimate is too high where the measured score is below its siblings', and the other way round
        if abs(one["z"]) > _OUT_OF_LINE and -one["deviation"] * np.sign(log) > _EXPLAINED * abs(log):
            way = "below" if one["deviation"] < 0 else "above"
            told.append(
                f"the measured score is {abs(100 * np.expm1(one['deviation'])):.0f} % {way} the median of "
                f"{int(one['siblings']) + 1} results of the same {known.rows.identity_words}"
            )
    count = known.entity.get(row)
    if little := known.little_known(row):
        told.append(little)
    elif count is not None and count <= _FEW < known.usual:
        held = "no result" if count == 0 else f"{count} result{'' if count == 1 else 's'}"
        told.append(f"training held {held} of this {known.rows.entity_words}, usual here are {known.usual:.0f}")
    unlike, rank = point["unlike"], point["rank"]
    if rank <= _LOW and unlike:
        others = min(int(100 * (1 - rank)), 99)
        told.append(f"farther from anything measured than {others} % of this question, {_most(unlike)}")
    if not told:
        told = ["no reason found in the data"]
        if abs(log) <= point["half"]:
            told = ["inside its interval: errors of this size were expected of such machines"]
    return "; ".join(told)


def _most(unlike: str) -> str:
    return f"above all {_UNLIKE.get(unlike, f'in its {unlike}')}"
