"""Statistics of every sequence: what predictors of tables read instead of the seconds themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfcast.features.feature_math import round_digits
from perfcast.schema.sequences import to_matrix
from perfcast.schema.table import Kind, Role, Table, select

REQUIRES: tuple[str, ...] = ()
STATISTICS = {
    "mean": "mean",
    "deviation": "standard deviation",
    "slope": "change per step by least squares",
    "last": "last value",
    "q10": "10 % quantile",
    "q90": "90 % quantile",
}
"""Statistic -> its meaning."""
SEPARATOR = "@"
"""Between a metric and its statistic: conf files leave all statistics out by the pattern `*@*`."""
_BLOCK = 1 << 16
"""Windows that are described at once: a few rows of many metrics, or many rows of one."""


def derive(table: Table) -> Table:
    """Append the statistics of every SEQUENCE feature, over its known values; missing where none is known.

    Few metrics are done at a time, so the memory is that of the statistics and of `_BLOCK` windows.
    """
    sequences = select(table.columns, kind=Kind.SEQUENCE, role=Role.FEATURE)
    columns = [
        replace(
            column,
            name=f"{column.name}{SEPARATOR}{name}",
            kind=Kind.NUMERICAL,
            meaning=f"{meaning}: {column.meaning}",
        )
        for column in sequences
        for name, meaning in STATISTICS.items()
    ]
    values = np.empty((len(columns), len(table.frame)))
    at_once = max(1, _BLOCK // max(1, len(table.frame)))
    for start in range(0, len(sequences), at_once):
        windows = np.stack([to_matrix(table.frame[column.name]) for column in sequences[start : start + at_once]])
        metrics, rows, steps = windows.shape
        described = round_digits(describe_windows(windows.reshape(metrics * rows, steps)))
        by_metric = described.reshape(len(STATISTICS), metrics, rows).swapaxes(0, 1)
        first = start * len(STATISTICS)
        last = first + metrics * len(STATISTICS)
        values[first:last] = by_metric.reshape(last - first, rows)
    return table.with_numbers(columns, values)


def describe_windows(windows: np.ndarray) -> np.ndarray:
    """Return the statistics of windows in the order of STATISTICS. Shapes: (n, steps) -> (statistics, n) float64.

    Quantiles are interpolated linearly between known values.
    """
    numbers = windows.astype(float)
    is_known = np.isfinite(numbers)
    count = is_known.sum(axis=1)
    divisor = np.maximum(count, 1)

    mean = np.where(is_known, numbers, 0.0).sum(axis=1) / divisor
    centered = np.where(is_known, numbers - mean[:, None], 0.0)
    deviation = np.sqrt((centered**2).sum(axis=1) / divisor)

    steps = np.where(is_known, np.arange(numbers.shape[1], dtype=float), 0.0)
    mean_step = steps.sum(axis=1) / divisor
    apart = np.where(is_known, steps - mean_step[:, None], 0.0)
    spread = (apart**2).sum(axis=1)
    product = (apart * centered).sum(axis=1)
    slope = np.divide(product, spread, out=np.zeros(len(numbers)), where=spread > 0)

    ordered = np.sort(np.where(is_known, numbers, np.inf), axis=1)  # the missing ones last
    ordered[np.isinf(ordered)] = 0.0
    statistics = np.stack(
        [
            mean,
            deviation,
            slope,
            numbers[:, -1],
            _quantile(ordered, count, 0.1),
            _quantile(ordered, count, 0.9),
        ]
    )
    statistics[:, count == 0] = np.nan
    return np.asarray(np.where(np.isfinite(statistics), statistics, np.nan))


def _quantile(ordered: np.ndarray, count: np.ndarray, level: float) -> np.ndarray:
    """Return a quantile of the first `count` values of every row. Shapes: (n, steps), (n,) -> (n,)."""
    place = level * np.maximum(count - 1, 0)
    below = np.floor(place).astype(int)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    rows = np.arange(len(ordered))
    low = ordered[rows, below]
    high = ordered[rows, above]
    weight = place - below
    return np.asarray(np.where(weight > 0, low * (1 - weight) + high * weight, low))
