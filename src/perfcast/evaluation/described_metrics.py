"""Metrics of machines that are predicted as users describe them, by level of description."""

from __future__ import annotations

import pandas as pd

from perfcast.evaluation.evaluation_tables import AVERAGE

DESCRIBED_COLUMNS = [
    *("split", "facts", "level", "task", "n", "mape", "medape"),
    *("coverage", "width", "interval_score"),
]
"""`facts`: which facts of processors count, those at the cut of a forward split or all. `level`: from 1, the name
alone, to the last one, everything that is published. `n`: rows. `width`: the median width of the interval."""

LEVEL_LABELS = ("name", "and chips", "and memory", "the data sheet", "everything published")
"""Names of the levels of description."""

_KEYS = ["split", "facts", "level"]


def summarize_described(predictions: pd.DataFrame | None, level: float) -> pd.DataFrame:
    """Return metrics by split, facts, level of description and task, and their average over tasks.

    Shapes: `predictions` as `predict_described_fold` -> DESCRIBED_COLUMNS; no row without predictions.
    Units: mape, medape and coverage in %, width in % of the prediction, interval_score in % of the measured score.
    """
    if predictions is None or predictions.empty:
        return pd.DataFrame(columns=DESCRIBED_COLUMNS)
    measured, low, high = (predictions[name] for name in ("measured", "low", "high"))
    outside = (low - measured).clip(lower=0) + (measured - high).clip(lower=0)
    rows = predictions[[*_KEYS, "task"]].assign(
        error=100 * (predictions["predicted"] / measured - 1).abs(),
        inside=100.0 * ((low <= measured) & (measured <= high)),
        width=100 * (high - low) / predictions["predicted"],
        score=100 * (high - low + 2 / (1 - level) * outside) / measured,
    )
    by_task = (
        rows.groupby([*_KEYS, "task"], sort=False)
        .agg(
            n=("error", "size"),
            mape=("error", "mean"),
            medape=("error", "median"),
            coverage=("inside", "mean"),
            width=("width", "median"),
            interval_score=("score", "mean"),
        )
        .reset_index()
    )
    average = by_task.drop(columns="task").groupby(_KEYS, sort=False, as_index=False).mean()
    total = by_task.groupby(_KEYS, sort=False)["n"].sum().to_numpy()
    table = pd.concat([by_task, average.assign(n=total, task=AVERAGE)], ignore_index=True)
    return table.sort_values([*_KEYS, "task"], kind="stable", ignore_index=True)[DESCRIBED_COLUMNS]
