"""Forecasts from a program or a notebook: machines as dictionaries, a frame or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.describing.files import Entry, entries_of, read_entries
from perfcast.forecasting.answer import Answer
from perfcast.forecasting.batch import forecast_in_batches
from perfcast.forecasting.champion import Champion, load_champion
from perfcast.forecasting.describing import describe
from perfcast.forecasting.forecast import Asked
from perfcast.schema import Column, Kind

Machines = Mapping[str, Any] | Sequence[Mapping[str, Any]] | pd.DataFrame | Path | str


def predict(
    machines: Machines, champion: Champion | Path | str = "results/champion/spec_cpu2017", **asked: Any
) -> Answer:
    """Forecast machines that nobody has measured.

    `machines` is one machine or several as names with values (`{"processor": "EPYC 9654", "chips": 2}`), a frame with
    a machine a row, or a .csv, .json or .yaml file; `champion` is `load_champion()`'s or its folder; `asked` are the
    fields of `Asked`. Raises: UserError for whatever cannot be used.
    """
    known = champion if isinstance(champion, Champion) else load_champion(champion)
    return forecast_entries(entries_from(machines), known, Asked(**asked))


def forecast_entries(entries: Sequence[Entry], champion: Champion, asked: Asked) -> Answer:
    """Forecast machines in words."""
    return forecast_in_batches(describe(entries, champion), champion, asked)


def entries_from(machines: Machines) -> list[Entry]:
    """Return what was said of machines in any of the ways of `predict`."""
    if isinstance(machines, (str, Path)):
        return read_entries(Path(machines))
    if isinstance(machines, pd.DataFrame):
        return entries_of_frame(machines)
    return entries_of(machines if isinstance(machines, Mapping) else list(machines), "a machine")


def entries_of_frame(frame: pd.DataFrame) -> list[Entry]:
    """Return what the rows of a frame say of machines; a missing cell says nothing. Rows are numbered from 1."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [
        (number, f"row {number}", {str(name): value for name, value in row.items()})
        for number, row in enumerate(plain.to_dict("records"), start=1)
    ]


def words_of(champion: Champion) -> dict[str, str]:
    """Return what a machine may be described by, and whether its value is a `string` or a number (`double`)."""
    vocabulary = champion.vocabulary
    columns = {word: (word,) for word in vocabulary.columns} | {
        word: field.columns for word, field in vocabulary.fields.items()
    }
    return {word: "double" if _is_number(names, vocabulary.columns) else "string" for word, names in columns.items()}


def _is_number(names: Sequence[str], columns: Mapping[str, Column]) -> bool:
    return len(names) == 1 and columns[names[0]].kind is Kind.NUMERICAL


def example_of(champion: Champion) -> pd.DataFrame:
    """Return a machine as it may be described: what the newest measured row states, but for dates."""
    columns = {name: column for name, column in champion.vocabulary.columns.items() if column.kind is not Kind.DATE}
    row = champion.knowledge.measured.frame[list(columns)].tail(1).reset_index(drop=True).dropna(axis=1)
    types = {str(name): "float64" if columns[str(name)].kind is Kind.NUMERICAL else "object" for name in row}
    return row.astype(types)
