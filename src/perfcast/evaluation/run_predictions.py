"""Predictions of one run, read from disk and checked, and the slices by which errors are reported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.schema.table import Kind, Table, Tag
from perfcast.schema.table_files import read_csv, read_parquet
from perfcast.utils.errors import UserError

COLUMNS = ["row", "task", "entity", "fold", "seed", "target", "measured", "predicted"]
HISTORY_COLUMNS = ["seed", "fold", "epoch", "train_loss", "validation_loss"]
_AGAIN = "delete the run's folder and run snakemake"
YEAR = "year"
"""Name of the slice made from the TIME column."""
TARGET = "target"
"""Name of the slice of the targets of a dataset with several outputs."""


@dataclass(frozen=True)
class Predictions:
    """Predictions of one predictor for the test rows of one split.

    Shapes: `frame` has one row per (seed, fold, test row, target), columns `COLUMNS`, sorted; `history` has one row
    per (seed, fold, epoch), columns `HISTORY_COLUMNS`, and no row when the predictor has no epochs.
    """

    split: str
    predictor: str
    frame: pd.DataFrame
    history: pd.DataFrame


def read_predictions(split: str, predictor: str, folder: Path) -> Predictions:
    """Read the predictions of one run folder; targets that were not measured are left out.

    Raises: UserError when the file is absent, or its content breaks the contract of a run.
    """
    path = Path(folder) / "predictions.parquet"
    if not path.is_file():
        raise UserError("a run must have predictions", f"{path} is missing", "run snakemake to make it")
    history = Path(folder) / "history.csv"
    epochs = read_csv(history) if history.is_file() else pd.DataFrame()
    if "epoch" not in epochs:
        epochs = pd.DataFrame(columns=HISTORY_COLUMNS)
    absent = [name for name in HISTORY_COLUMNS if name not in epochs]
    if absent:
        raise UserError(f"{history} must have the column {absent[0]!r}", "it lacks that column", _AGAIN)
    frame = read_parquet(path, COLUMNS)
    try:
        predictions = check_predictions(frame, f"{split}/{predictor}")
    except (ValueError, TypeError) as error:
        raise UserError("predictions must be as they were saved", f"{path}: {error}", _AGAIN) from None
    return Predictions(split, predictor, predictions, epochs[HISTORY_COLUMNS])


def check_predictions(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the measured rows of `frame` in canonical order.

    Raises: ValueError when a column is missing, a score is not positive and finite, or a row was predicted twice.
    """
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise ValueError(f"predictions of {name} lack columns: {missing}")
    measured_rows = frame.loc[frame["measured"].notna(), COLUMNS]
    for column in ("measured", "predicted"):
        values = measured_rows[column].to_numpy(dtype=float)
        if not (np.isfinite(values) & (values > 0)).all():
            raise ValueError(f"{column} scores of {name} must be positive and finite")
    keys = ["seed", "task", "target", "row"]
    if measured_rows.duplicated(keys).any():
        raise ValueError(f"predictions of {name} hold a row twice within a seed")
    return measured_rows.sort_values(keys, kind="stable", ignore_index=True)


def build_slices(table: Table) -> pd.DataFrame:
    """Return one text column per TASK and SLICE column, and the year of the TIME column: the slices of errors.

    Shapes: index is the ROW column; a value that is missing is NaN and belongs to no slice.
    """
    names = [*table.select(tag=Tag.TASK), *table.select(tag=Tag.SLICE)]
    slices = {name: table.frame[name].astype("object") for name in names}
    times = table.select(tag=Tag.TIME, kind=Kind.DATE)
    if times:
        year = table.frame[times[0]].dt.year
        slices[YEAR] = year.astype("Int64").astype("object").where(year.notna())
    frame = pd.DataFrame(slices, index=table.frame.index)
    frame = frame.map(lambda value: _text(value) if pd.notna(value) else np.nan)
    return frame.set_index(pd.Index(table.frame[table.column_of(Tag.ROW)], name="row"))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def attach_slices(frame: pd.DataFrame, slices: pd.DataFrame) -> pd.DataFrame:
    """Return one text column per slice, aligned with the rows of `frame`.

    Raises: UserError when a predicted row is not in the table.
    """
    unknown = ~frame["row"].isin(slices.index)
    if unknown.any():
        fact = f"{int(unknown.sum())} of them are not"
        raise UserError("predicted rows must be in the features table", fact, "run snakemake to make both again")
    joined = slices.loc[frame["row"]].set_axis(frame.index)
    if frame["target"].nunique() > 1:
        joined[TARGET] = frame["target"].astype(str)
    return joined
