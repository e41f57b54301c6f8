"""How forecasts of new families of machines turned out, launch by launch: the error with its sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.evaluation.intervals import covered, width
from perfcast.figures._slices import lineage_slices, maker_slices
from perfcast.report.rows import ENTITY, WHEN, Rows

_LEAST_ROWS = 5
_REACH = 0.1, 0.9
_ROUND = (5, 10, 20, 30, 40, 50, 75, 100, 200)


@dataclass(frozen=True)
class Launch:
    """One family on one forward question. Units: signed, size, low, middle and high in % of the measured score."""

    split: str
    family: str
    maker: str
    first: str
    known: int
    rows: int
    entities: int
    signed: float
    size: float
    low: float
    middle: float
    high: float
    coverage: float
    width: float


def launches(evaluation: Evaluation, rows: Rows, predictor: str) -> dict[str, list[Launch]]:
    """Return, by forward question, the families that training knew least of, oldest first; empty without such splits.

    A family is new where training held none of its results; `known` says how many it held of the others.
    """
    families = [name for name in lineage_slices(evaluation) if name in rows.slices][:1]
    if not families:
        return {}
    found = {}
    for split in evaluation.questions:
        points = evaluation.points[
            (evaluation.points["split"] == split) & (evaluation.points["predictor"] == predictor)
        ]
        if points.empty or not rows.is_forward(split):
            continue
        told = [one for name in families for one in _of(evaluation, rows, points, name)]
        if told:
            found[split] = sorted(told, key=lambda one: (one.known > 0, one.first, one.family))
    return found


def reach(lines: Sequence[Launch]) -> int:
    """Return where the axis of the bars ends, in % on either side: a round number that holds nine in ten of them."""
    ends = sorted(max(abs(one.low), abs(one.high)) for one in lines)
    wanted = ends[int(np.ceil(0.9 * (len(ends) - 1)))]
    return next(round_number for round_number in _ROUND if round_number >= min(wanted, _ROUND[-1]))


def place(error: float, most: int) -> float:
    """Return where an error stands on an axis from -100 to 100; what is beyond it stands at its end."""
    return round(100 * max(-1.0, min(1.0, error / most)), 1)


def _of(evaluation: Evaluation, rows: Rows, points: pd.DataFrame, name: str) -> list[Launch]:
    """Return one line per value of a slice that has enough test rows."""
    split = str(points["split"].iloc[0])
    counts = rows.known(split, rows.slices[name])
    makers = maker_slices(evaluation)[:1]
    joined = points.assign(
        family=rows.slices.loc[points["row"], name].to_numpy(),
        maker=rows.slices.loc[points["row"], makers[0]].to_numpy() if makers else "",
        entity=rows.names.loc[points["row"], ENTITY].to_numpy(),
        when=rows.names.loc[points["row"], WHEN].to_numpy(),
        known=counts.reindex(points["row"]).to_numpy(),
        off=100 * (points["predicted"].astype(float) / points["measured"].astype(float) - 1),
    )
    found = []
    for family, part in joined.groupby("family", sort=True):
        if part["row"].nunique() < _LEAST_ROWS:
            continue
        low, middle, high = part["off"].quantile([_REACH[0], 0.5, _REACH[1]])
        found.append(
            Launch(
                split=split,
                family=str(family),
                maker=str(part["maker"].mode().iloc[0]) if part["maker"].notna().any() else "",
                first=f"{part['when'].min():%Y-%m}",
                known=int(part["known"].min()),
                rows=int(part["row"].nunique()),
                entities=int(part["entity"].nunique()),
                signed=float(part["off"].mean()),
                size=float(part["off"].abs().mean()),
                low=float(low),
                middle=float(middle),
                high=float(high),
                coverage=100 * float(np.mean(covered(part))),
                width=float(np.mean(width(part["half"].to_numpy(dtype=float)))),
            )
        )
    return found
