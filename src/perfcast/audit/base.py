"""What a check of the audit looks at, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perfcast.errors import UserError
from perfcast.plain_yaml import read_mapping
from perfcast.predictors.base import Predictor
from perfcast.schema import Column, Table, Tag
from perfcast.splits import is_question

LEARNED = ("train", "valid")
"""The parts of a fold that a predictor learns from."""
_COMMON = ("row", "target", "measured", "predicted")


@dataclass(frozen=True)
class Run:
    """One run folder; its tables are read when asked for, because many runs are audited at once."""

    split: str
    predictor: str
    folder: Path

    @property
    def name(self) -> str:
        """How findings call the run."""
        return f"{self.predictor} on {self.split}"

    def predictions(self) -> pd.DataFrame:
        """Return the columns of predictions.parquet that checks look at, texts as categories.

        Raises: UserError when the file is absent or lacks a column.
        """
        return self._table("predictions", [*_COMMON, "fold", "seed"])

    def rehearsals(self) -> pd.DataFrame:
        """Return those of rehearsals.parquet, no row where nothing was rehearsed. Raises: as `predictions`."""
        return self._table("rehearsals", [*_COMMON, "rehearsal"], beside=["fold", "seed"])

    def about(self) -> dict[str, Any]:
        """Return config.yaml; empty where the run has none."""
        path = self.folder / "config.yaml"
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        return read_mapping(text, str(path))

    def _table(self, name: str, columns: list[str], beside: Sequence[str] = ()) -> pd.DataFrame:
        path = self.folder / f"{name}.parquet"
        if not path.is_file():
            raise UserError("a run to be audited must have its tables", f"there is no {path}", "run snakemake")
        try:
            there = pq.read_schema(path).names
        except (pa.ArrowException, OSError) as error:
            raise UserError("a run must have Parquet files", f"{path} is none ({error})", "train again") from None
        if missing := [column for column in columns if column not in there]:
            raise UserError(f"{path} must have the columns of a run", f"it lacks {', '.join(missing)}", "train again")
        wanted = [*columns, *[column for column in beside if column in there]]
        frame: pd.DataFrame = pq.read_table(path, columns=wanted, read_dictionary=["row", "target"]).to_pandas()
        return frame


@dataclass(frozen=True)
class Control:
    """The predictor that is trained on shuffled targets: its name, what makes it from a seed, how many shuffles."""

    name: str
    make: Callable[[int], Predictor]
    shuffles: int


@dataclass(frozen=True)
class Evidence:
    """What the stages wrote of one data set.

    `standard` are the declarations before features were derived; `splits` are the files of the splits, one row per
    row of the table, the ROW column and fold_0 ..; `stochastic` names the predictors with randomness.
    """

    table: Table
    standard: tuple[Column, ...]
    splits: Mapping[str, pd.DataFrame]
    runs: tuple[Run, ...]
    stochastic: frozenset[str]
    control: Control
    resamples: int
    seed: int

    def folds(self, split: str) -> pd.DataFrame:
        """Return the folds of a split by position, as training reads them. Shapes: index as the table's."""
        frame = self.splits[split].filter(like="fold_")
        return frame.set_axis(self.table.frame.index, axis=0) if len(frame) == len(self.table.frame) else frame

    def parts(self, split: str) -> pd.DataFrame:
        """Return the folds of a split by the key of the row. Shapes: index ROW, columns fold number."""
        frame = self.splits[split].drop_duplicates(self.table.column_of(Tag.ROW)).set_index(self.table.column_of(Tag.ROW))
        folds = frame.filter(like="fold_")
        return folds.set_axis([int(str(name).removeprefix("fold_")) for name in folds], axis=1)

    def asked_first(self) -> str:
        """Return `random`, the question nearest to memory, or else the first split that is a question."""
        questions = [name for name in self.splits if is_question(name)] or list(self.splits)
        return "random" if "random" in questions else questions[0]


@dataclass(frozen=True)
class Looked:
    """What a check looked at in a few words, one sentence per finding, and numbers worth reporting."""

    at: str
    findings: tuple[str, ...] = ()
    numbers: Mapping[str, float | str | None] = field(default_factory=dict)


def learned(folds: pd.DataFrame, fold: str) -> np.ndarray:
    """Mark the rows that one fold learns from, (n,) bool."""
    return np.asarray(folds[fold].isin(LEARNED), dtype=bool)


def places(index: pd.Index, values: pd.Series) -> np.ndarray:
    """Return where each value is in an index, -1 where it is not; every category is looked up once. (n,) int."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        found = index.get_indexer(pd.Index(values.cat.categories.astype(index.dtype)))
        return np.asarray(np.where(values.cat.codes >= 0, found[values.cat.codes.to_numpy()], -1))
    return np.asarray(index.get_indexer(pd.Index(values)))


def some(names: list[str], most: int = 3) -> str:
    """Return the first names and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
