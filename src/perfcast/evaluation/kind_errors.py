"""Errors by kind of result: accuracies and other shares of 1 in points, losses and bits per byte in %.

A mean of percentages over losses and accuracies means little: an accuracy of 2 % that is predicted as 4 % has an error
of 100 %, or of two points.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import draw_weights, percentile_interval
from perfcast.schema.table import Role, Table, Tag, select

KIND_COLUMNS = [
    *("split", "predictor", "kind", "unit", "mean", "low", "high", "median", "signed"),
    *("coverage", "width", "rows", "runs"),
]
"""`mean`, `median` and `signed` error (predicted minus measured) and median `width` of the intervals, all in `unit`;
`low` to `high`: 95 % bootstrap interval of the mean, clustered by run; `coverage` of the intervals in %."""
POINTS, PERCENT = "points", "%"

_KIND, _SHARE, _SHARE_UNIT = "task_kind", "accuracy", "share"


def tabulate_kind_errors(points: pd.DataFrame, table: Table, resamples: int, seed: int) -> pd.DataFrame:
    """Return the errors of every split, predictor and kind; no row for a table without kinds.

    The mean is that of the rows. Kinds are shares where the unit of the target says so.
    Shapes: `points` as in `Evaluation` -> KIND_COLUMNS.
    """
    blocks = table.select(tag=Tag.BLOCK)
    if _KIND not in table.frame or not blocks or points.empty:
        return pd.DataFrame(columns=KIND_COLUMNS)
    places = pd.Index(table.frame[table.column_of(Tag.ROW)]).get_indexer(pd.Index(points["row"]))
    known = table.frame.iloc[places]
    runs = known[blocks].astype(str).agg("\x1f".join, axis=1).to_numpy()
    frame = points.assign(kind=known[_KIND].astype(str).to_numpy(), run=runs)
    groups = frame.groupby(["split", "predictor", "kind"], sort=False)
    are_shares = any(column.unit.startswith(_SHARE_UNIT) for column in select(table.columns, role=Role.TARGET))
    rows = [
        {
            **dict(zip(("split", "predictor", "kind"), key, strict=True)),
            **_summarize(part, are_shares or str(key[2]) == _SHARE, resamples, seed),
        }
        for key, part in groups
    ]
    return pd.DataFrame(rows, columns=KIND_COLUMNS)


def _summarize(part: pd.DataFrame, is_share: bool, resamples: int, seed: int) -> dict[str, object]:
    measured, predicted, half = (part[name].to_numpy(dtype=float) for name in ("measured", "predicted", "half_width"))
    scale = np.ones(len(part)) if is_share else measured
    signed = 100 * (predicted - measured) / scale
    codes, names = pd.factorize(part["run"])
    weights = draw_weights(len(names), resamples, seed)
    totals = weights @ np.bincount(codes, np.abs(signed), len(names))
    low, high = percentile_interval(totals / (weights @ np.bincount(codes, minlength=len(names))), len(names))
    inside = np.where(np.isnan(half), np.nan, np.abs(np.log(predicted / measured)) <= half)
    widths = 100 * predicted * (np.exp(half) - np.exp(-half)) / (np.ones(len(part)) if is_share else predicted)
    return {
        **{"unit": POINTS if is_share else PERCENT, "mean": float(np.abs(signed).mean()), "low": low, "high": high},
        **{"median": float(np.median(np.abs(signed))), "signed": float(signed.mean())},
        **{"coverage": 100 * float(inside.mean()), "width": float(np.median(widths))},
        **{"rows": len(part), "runs": len(names)},
    }
