"""Quality of the layouts that predictions choose: the decision that latencies are predicted for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.utils.errors import UserError

CHOICE_COLUMNS = [
    "split",
    "predictor",
    "limit",
    "share",
    "violated",
    "median_loss",
    "questions",
    "options",
]
"""`limit` of the time, in the unit of the target. `share` of questions with a good choice, and `violated`, of those
whose choice exceeds the limit, in %. `median_loss` of throughput against the best option, in %. `options`: mean number
per question."""

TOLERANCE = 0.10
"""A choice is good when its throughput is within this share of the best, and its time within it of the limit."""
_FEWEST = 2
"""Fewest options of a question."""


def tabulate_choices(
    points: pd.DataFrame,
    table: Table,
    *,
    task: str,
    question: Sequence[str],
    work: str,
    cost: str,
    limits: Sequence[float],
) -> pd.DataFrame:
    """Return how good the predicted best option of each question is, by split, predictor and limit.

    The options of a question are the test rows of a task that agree on the columns `question`. Each has a
    throughput per unit of cost, work / (time x cost), from the columns `work` and `cost`. A predictor chooses the
    highest predicted throughput among the options whose predicted time is within the limit, or the smallest time
    where there are none. Questions that no option answers within the limit are left out.
    Units: `limits` in that of the target. Shapes: `points` as in `Evaluation` -> CHOICE_COLUMNS.
    Raises: UserError when the table lacks a column.
    """
    if points.empty:
        return pd.DataFrame(columns=CHOICE_COLUMNS)
    known = table.frame.set_index(table.column_of(Tag.ROW))
    needed = [*question, work, cost]
    if missing := [name for name in needed if name not in known]:
        raise UserError(
            "columns of `choices` must be in the table",
            f"{missing[0]!r} is not",
            "edit `choices` in the conf of the dataset",
        )
    frame = points[points["task"] == task]
    rows = known.loc[frame["row"], needed].reset_index(drop=True)
    frame = frame.reset_index(drop=True).assign(
        question=rows.groupby(list(question), dropna=False, sort=False).ngroup(),
        rate=(rows[work] / rows[cost]).to_numpy(dtype=float),
    )
    lines = [
        {
            "split": split,
            "predictor": predictor,
            "limit": limit,
            **_score_choices(part, float(limit)),
        }
        for (split, predictor), part in frame.groupby(["split", "predictor"], sort=False)
        for limit in limits
    ]
    scored = pd.DataFrame(lines, columns=CHOICE_COLUMNS)
    return scored[scored["questions"] > 0].reset_index(drop=True)


def _score_choices(part: pd.DataFrame, limit: float) -> dict[str, float | int]:
    """Score the choices of one predictor on one split under one limit."""
    good = []
    violated = []
    loss = []
    options = []
    for _, question in part.groupby("question", sort=False):
        measured = question["measured"].to_numpy(dtype=float)
        predicted = question["predicted"].to_numpy(dtype=float)
        rate = question["rate"].to_numpy(dtype=float)
        if len(question) < _FEWEST or not (measured <= limit).any():
            continue
        within = predicted <= limit
        chosen = np.argmax(np.where(within, rate / predicted, -np.inf)) if within.any() else np.argmin(predicted)
        throughput = rate / measured
        best = throughput[measured <= limit].max()
        exceeds = measured[chosen] > (1 + TOLERANCE) * limit
        violated.append(exceeds)
        good.append(not exceeds and throughput[chosen] >= (1 - TOLERANCE) * best)
        loss.append(1 - throughput[chosen] / best)
        options.append(len(question))
    if not good:
        return {
            "share": np.nan,
            "violated": np.nan,
            "median_loss": np.nan,
            "questions": 0,
            "options": np.nan,
        }
    return {
        "share": 100 * float(np.mean(good)),
        "violated": 100 * float(np.mean(violated)),
        "median_loss": 100 * float(np.median(loss)),
        "questions": len(good),
        "options": float(np.mean(options)),
    }
