"""Errors by kind of result: accuracies and other shares of 1 in points, losses and bits per byte in %.

A mean of percentages over losses and accuracies means little: an accuracy of 2 % that is predicted as 4 % has an error
of 100 %, or of two points.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import draw_weights, percentile_interval
from perfcast.schema.table import TASK_KIND, Role, Table, Tag, select

KIND_COLUMNS = [
    *("split", "predictor", "kind", "slice", "value", "unit", "mean", "low", "high", "median", "signed"),
    *("r2", "r2_low", "r2_high", "coverage", "width", "rows", "runs"),
]
"""`slice` and `value`: rows of one value of a slice, "" for all rows. `mean`, `median` and `signed` error (predicted
minus measured) and median `width` of the intervals, all in `unit`; `low` to `high`: 95 % bootstrap interval of the
mean, clustered by run, and `r2_low` to `r2_high` that of R2; `coverage` of the intervals in %."""
POINTS, PERCENT = "points", "%"

_NO_VARIANCE = 1e-9
"""Share of the sum of squares below which the measured values are all alike."""
_SHARE, _SHARE_UNIT = "accuracy", "share"


def predicts_shares(table: Table) -> bool:
    """Return whether the targets are shares by their units: their errors are in points, not in per cent."""
    targets = select(table.columns, role=Role.TARGET)
    return bool(targets) and all(column.unit.startswith(_SHARE_UNIT) for column in targets)


def tabulate_kind_errors(points: pd.DataFrame, table: Table, *, resamples: int, seed: int) -> pd.DataFrame:
    """Return the errors of every split, predictor and kind; no row for a table without kinds.

    The mean is that of the rows. Kinds are shares where the unit of the target says so; of those, every SLICE column
    has rows too.
    Shapes: `points` as in `Evaluation` -> KIND_COLUMNS.
    """
    blocks = table.select(tag=Tag.BLOCK)
    if TASK_KIND not in table.frame or not blocks or points.empty:
        return pd.DataFrame(columns=KIND_COLUMNS)
    places = pd.Index(table.frame[table.column_of(Tag.ROW)]).get_indexer(pd.Index(points["row"]))
    known = table.frame.iloc[places]
    runs = known[blocks].astype(str).agg("\x1f".join, axis=1).to_numpy()
    frame = points.assign(kind=known[TASK_KIND].astype(str).to_numpy(), run=runs)
    are_shares = predicts_shares(table)
    slices = {"": np.full(len(frame), "")}
    if are_shares:
        slices |= {name: known[name].astype(str).to_numpy() for name in table.select(tag=Tag.SLICE)}
    by = ["split", "predictor", "kind", "value"]
    rows = [
        {
            **dict(zip(by, key, strict=True)),
            "slice": name,
            **_summarize(part, are_shares or str(key[2]).startswith(_SHARE), resamples, seed),
        }
        for name, values in slices.items()
        for key, part in frame.assign(value=values).groupby(by, sort=False)
    ]
    return pd.DataFrame(rows, columns=KIND_COLUMNS)


def whole_kinds(kinds: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of all rows of a kind, without those of slices."""
    return kinds[kinds["slice"].isna() | (kinds["slice"] == "")]


def _summarize(part: pd.DataFrame, is_share: bool, resamples: int, seed: int) -> dict[str, object]:
    measured, predicted, half = (part[name].to_numpy(dtype=float) for name in ("measured", "predicted", "half_width"))
    scale = np.ones(len(part)) if is_share else measured
    signed = 100 * (predicted - measured) / scale
    codes, names = pd.factorize(part["run"])
    weights = draw_weights(len(names), resamples, seed)
    counts = weights @ np.bincount(codes, minlength=len(names))
    low, high = percentile_interval(weights @ np.bincount(codes, np.abs(signed), len(names)) / counts, len(names))
    r2, draws = _explained(measured, predicted, codes, weights)
    r2_low, r2_high = percentile_interval(draws, len(names))
    inside = np.where(np.isnan(half), np.nan, np.abs(np.log(predicted / measured)) <= half)
    widths = 100 * predicted * (np.exp(half) - np.exp(-half)) / (np.ones(len(part)) if is_share else predicted)
    return {
        **{"unit": POINTS if is_share else PERCENT, "mean": float(np.abs(signed).mean()), "low": low, "high": high},
        **{"median": float(np.median(np.abs(signed))), "signed": float(signed.mean())},
        **{"r2": r2, "r2_low": r2_low, "r2_high": r2_high},
        **{"coverage": 100 * float(inside.mean()), "width": float(np.median(widths))},
        **{"rows": len(part), "runs": len(names)},
    }


def _explained(
    measured: np.ndarray, predicted: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the explained share of the variance, and that of every resample; NaN without variance.

    Shapes: rows (n,), codes of their clusters (n,), weights (resamples, clusters).
    """
    count = weights.shape[1]
    parts = [np.bincount(codes, values, count) for values in (measured, measured**2, (predicted - measured) ** 2)]
    sizes = np.bincount(codes, minlength=count)

    def of(weight: np.ndarray) -> np.ndarray:
        total, squares, errors = (weight @ part for part in parts)
        variance = squares - total**2 / (weight @ sizes)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(variance > _NO_VARIANCE * squares, 1 - errors / variance, np.nan))

    return float(of(np.ones((1, count)))[0]), of(weights)
