"""Interference measured on one machine: a Parquet file of labeled seconds, and the description of the machine."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from perfcast.schema.table_files import read_parquet
from perfcast.utils.errors import UserError

TABLE = "host_interference.parquet"
MACHINE = "host_interference.json"
REMEDY = "restore data/embedded"
PLACES = (
    "run",
    "attempt",
    "scenario",
    "placement",
    "quota",
    "memory_slack_mib",
    "tenant",
    "victim",
    "intensity",
    "aggressors",
    "aggressor_count",
    "aggressor_intensity",
    "phase",
    "second",
    "clock",
)
"""Columns that tell where a row comes from."""
LABELS = (
    "throughput",
    "throughput_alone",
    "degradation",
    "latency_p99",
    "latency_p99_alone",
    "degradation_p99",
    "reference_spread",
    "reference_spread_p99",
    "late",
    "rejected",
)
"""Columns of labels, their parts and their quality."""
_UNREAD = {"memory_slack_mib", "clock"}
"""Places that a table may lack."""


def read_seconds(path: Path) -> pd.DataFrame:
    """Return the labeled seconds; every column beside places and labels is a metric.

    Raises: UserError when the file is absent or no such table, or a metric holds no numbers.
    """
    frame = read_parquet(path, [name for name in (*PLACES, *LABELS) if name not in _UNREAD])
    metrics = metric_names(frame)
    texts = [name for name in metrics if frame[name].dtype.kind not in "fiu"]
    if texts or not metrics or frame.empty:
        fact = f"{texts[0]} holds {frame[texts[0]].dtype}" if texts else "it has no rows or no metrics"
        raise UserError(f"metrics of {path.name} must be numbers", fact, REMEDY)
    return frame


def metric_names(frame: pd.DataFrame) -> list[str]:
    """Return the names of the metrics, sorted."""
    return sorted(set(map(str, frame.columns)) - {*PLACES, *LABELS})
