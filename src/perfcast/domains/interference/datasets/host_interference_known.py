"""Interference of tenants that the host has seen alone: rows of `host_interference`, with the victim's metrics then.

A host seldom meets a tenant for the first time beside neighbors. What its control group used alone is known without a
word of the victim, and the same rows ask how much that helps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.domains.interference.datasets.host_interference import SOURCE
from perfcast.domains.interference.datasets.host_interference import build as build_unknown
from perfcast.domains.interference.sources.host_interference import TABLE, metric_names, read_seconds
from perfcast.schema.table import Column, Kind, Role

DATASET = "host_interference_known"
ALONE = "alone."
"""Before the name of a metric: its mean over the earlier seconds alone."""
_OF_VICTIM = "group."
_ALONE_PHASE = "alone"


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the labeled seconds as `host_interference`, and append the victim's metrics alone.

    The mean is over the seconds alone before the row's second, in the same run: a later one is not known yet. It is
    missing before the first. Options and errors are those of `host_interference`.
    """
    standardized = build_unknown(raw, options)
    seconds = read_seconds(raw[SOURCE] / TABLE).reset_index(drop=True)
    metrics = [name for name in metric_names(seconds) if name.startswith(_OF_VICTIM)]
    means = average_alone(seconds, metrics)
    table = standardized.table
    positions = table.frame["source_line"].to_numpy().astype(np.int64) - 1
    columns = [_declare(name) for name in metrics]
    table = table.with_numbers(columns, means[positions].T)
    return replace(standardized, table=replace(table, dataset=DATASET))


def average_alone(seconds: pd.DataFrame, metrics: list[str]) -> np.ndarray:
    """Return the mean of metrics over the earlier seconds alone of the same tenant and run, NaN without one.

    Shapes: `seconds` with run, attempt, tenant, second and phase, (n,) -> (n, metrics) float64.
    """
    values = seconds[metrics].to_numpy(dtype="float64", na_value=np.nan)
    is_alone = (seconds["phase"] == _ALONE_PHASE).to_numpy(dtype=bool)
    values = np.where(np.isfinite(values) & is_alone[:, None], values, np.nan)
    tenant = seconds.groupby(["run", "attempt", "tenant"], sort=False).ngroup()
    order = np.lexsort((seconds["second"], tenant))
    frame = pd.DataFrame(values[order])
    groups = tenant.to_numpy()[order]
    known = frame.notna()
    totals = frame.fillna(0.0).groupby(groups).cumsum() - frame.fillna(0.0)
    counts = known.groupby(groups).cumsum() - known
    means = np.empty_like(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        means[order] = np.where(counts > 0, totals / counts, np.nan)
    return means


def _declare(metric: str) -> Column:
    meaning = f"mean of {metric} over the earlier seconds alone"
    return Column(ALONE + metric, Kind.NUMERICAL, Role.FEATURE, "alone", meaning=meaning)
