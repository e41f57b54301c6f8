"""Feature importance and attention maps of many runs, as tidy tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from perfcast.schema.table_files import read_csv

IMPORTANCE_COLUMNS = ["split", "predictor", "group", "mape", "increase"]
ATTENTION_COLUMNS = ["split", "predictor", "group", "asks", "looks_at", "share"]
BETWEEN = "between_groups"
"""The name, in the column `group`, of the map between groups."""


def read_importances(runs: Mapping[tuple[str, str], Path]) -> pd.DataFrame:
    """Return the grouped permutation importance of every run that has one: columns IMPORTANCE_COLUMNS."""
    frames = [
        read_csv(path).assign(split=split, predictor=predictor)
        for (split, predictor), folder in runs.items()
        if (path := folder / "explanation" / "importance.csv").is_file()
    ]
    return _stacked(frames, IMPORTANCE_COLUMNS)


def read_attentions(runs: Mapping[tuple[str, str], Path]) -> pd.DataFrame:
    """Return the attention maps of every run that has some, one line per cell: columns ATTENTION_COLUMNS."""
    frames = []
    for (split, predictor), folder in runs.items():
        for path in sorted((folder / "explanation").glob("attention_*.csv")):
            shares = read_csv(path)
            shares.columns = pd.Index(["asks", *shares.columns[1:]])
            group = path.stem.removeprefix("attention_")
            cells = shares.melt(id_vars="asks", var_name="looks_at", value_name="share")
            frames.append(cells.assign(split=split, predictor=predictor, group=group))
    return _stacked(frames, ATTENTION_COLUMNS)


def _stacked(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
