"""From standard rows to what a predictor reads."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from perfcast import plugins
from perfcast.schema import Column, Table, build_table


def featured(dataset: str, frame: pd.DataFrame, columns: Sequence[Column], features: Sequence[str]) -> Table:
    """Return standard rows, with a fresh index, and the derived features of a data set."""
    table = build_table(dataset, frame, columns)
    for name in features:
        table = plugins.load("features", name).derive(table)
    return table
