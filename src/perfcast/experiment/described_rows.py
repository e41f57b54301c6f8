"""Rows of a table as described machines: their draw by a seed, and their predictions at every level of description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawPredictions, impute_draws
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import parse_batch
from perfcast.schema.table import Kind, Table, Tag
from perfcast.uncertainty.conformal import LEVEL

MAX_MACHINES = 300
"""Most test machines of a split, drawn by a seed: more cost time and change the metrics little."""


@dataclass(frozen=True)
class DescribedData:
    """Tables of a dataset with rows in the same order, folders of its ingested sources, and names of feature modules.

    `standard` is the table that descriptions are taken from, `table` the one with features.
    """

    standard: Table
    table: Table
    raw: Mapping[str, Path]
    features: tuple[str, ...]


def find_cut(table: Table, training: np.ndarray, testing: np.ndarray) -> pd.Timestamp | None:
    """Return the month of the first test row where all training rows are earlier: the cut of a forward split."""
    times = table.select(tag=Tag.TIME)
    if not times:
        return None
    when = table.frame[times[0]]
    first = pd.Timestamp(when[testing].min())
    return first if when[training].max() < first else None


def draw_machines(table: Table, rows: np.ndarray, seed: int, most: int = MAX_MACHINES) -> np.ndarray:
    """Return the row numbers of at most `most` machines, by submission where there are such, else by row."""
    blocks = table.frame[(table.select(tag=Tag.BLOCK) or [table.column_of(Tag.ROW)])[0]]
    distinct = np.sort(blocks[rows].astype(str).unique())
    count = min(most, len(distinct))
    drawn = np.random.default_rng(seed).choice(distinct, count, replace=False)
    return np.flatnonzero(rows & blocks.astype(str).isin(drawn).to_numpy())


def predict_described(champion: Champion, standard: Table, rows: np.ndarray, level: float = LEVEL) -> pd.DataFrame:
    """Return the predictions of some rows of a standard table at every level, see `predict_described_fold`."""
    frame = standard.frame.iloc[rows]
    levels = champion.description_levels
    parts = [
        _predict_level(champion, standard, frame, columns, level).assign(level=number)
        for number, columns in enumerate(levels, start=1)
    ]
    return pd.concat(parts, ignore_index=True)


def _predict_level(
    champion: Champion, standard: Table, frame: pd.DataFrame, columns: tuple[str, ...], level: float
) -> pd.DataFrame:
    entries = list(describe_rows(frame, standard, columns))
    machines = parse_batch(entries, champion)
    if (column := champion.rules.enumerated) is not None:
        # of the answers for every value of this column, a user reads that of the own machine
        expected = frame[column].to_numpy()[list(map(machines.line_of, machines.keys))]
        machines = machines.take(machines.cells[column] == expected)
    drawn = DrawPredictions(impute_draws(machines, champion), champion)
    lines = list(map(machines.line_of, drawn.completed.cells.index.tolist()))
    measured = frame.iloc[lines].reset_index(drop=True)
    times = standard.select(tag=Tag.TIME)
    when = measured[times[0]] if times else None
    parts = []
    for number, target in enumerate(champion.predictor.targets_):
        part = pd.DataFrame(
            {
                "row": measured[standard.column_of(Tag.ROW)],
                "entity": measured[standard.column_of(Tag.ENTITY)].astype(str),
                "task": measured[standard.column_of(Tag.TASK)].astype(str),
                "target": target,
                "measured": measured[target].where(drawn.has_output[:, number]),
                "predicted": drawn.medians[:, number],
            }
        )
        intervals = drawn.intervals(number, when, level)
        if intervals is None:
            intervals = pd.DataFrame({"below": np.nan, "above": np.nan, "half_width": np.nan}, index=part.index)
        part["low"] = part["predicted"] * np.exp(-intervals["below"].to_numpy())
        part["high"] = part["predicted"] * np.exp(intervals["above"].to_numpy())
        part["half_width"] = intervals["half_width"].to_numpy()
        parts.append(part)
    long = pd.concat(parts, ignore_index=True)
    return long[long["measured"].notna()]


def describe_rows(frame: pd.DataFrame, table: Table, columns: Sequence[str]) -> Iterator[MachineEntry]:
    """Yield every row as a user would type it, with the known cells of some columns; lines are numbered from 0."""
    dates = {column.name for column in table.columns if column.kind is Kind.DATE}
    names = [name for name in columns if name in frame]
    for line, cells in enumerate(frame[names].itertuples(index=False, name=None)):
        values: dict[str, object] = {
            name: f"{cell:%Y-%m}" if name in dates else cell
            for name, cell in zip(names, cells, strict=True)
            if not pd.isna(cell)
        }
        yield MachineEntry(line, f"machine {line}", values)
