"""Input and output of leakage checks: the files of one dataset, and the report of one check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domain import CORE, Domain
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.splits import is_compared

TRAINING_SUBSETS = ("train", "validation")
"""The subsets of a fold that a predictor is trained on."""
_COMMON = ("row", "target", "measured", "predicted")


@dataclass(frozen=True)
class Run:
    """One run folder. Its tables are read on demand, because many runs are checked at once."""

    split: str
    predictor: str
    folder: Path

    @property
    def name(self) -> str:
        """Name of the run in findings."""
        return f"{self.predictor} on {self.split}"

    def predictions(self) -> pd.DataFrame:
        """Return the columns of predictions.parquet that checks read.

        Raises: UserError when the file is absent or lacks a column.
        """
        return self._table("predictions", [*_COMMON, "fold", "seed"])

    def backtests(self) -> pd.DataFrame:
        """Return the same of backtest.parquet, empty without backtests. Raises: as `predictions`."""
        return self._table("backtest", [*_COMMON, "backtest"], beside=["fold", "seed"])

    def _table(self, name: str, columns: list[str], beside: Sequence[str] = ()) -> pd.DataFrame:
        frame = read_parquet(self.folder / f"{name}.parquet", columns)
        return frame[[*columns, *[column for column in beside if column in frame]]]


@dataclass(frozen=True)
class Control:
    """The predictor that is trained on shuffled targets: name, constructor from a seed, number of shuffles."""

    name: str
    make: Callable[[int], Predictor]
    shuffles: int


@dataclass(frozen=True)
class Artifacts:
    """The files that the stages wrote for one dataset.

    `standard` are the column declarations before features were derived. `splits` are the split files: one row per row
    of the table, with the ROW column and fold_0 and so on. `features` are the modules that derived the features.
    The checks of the `domain` run too.
    """

    table: Table
    standard: tuple[Column, ...]
    splits: Mapping[str, pd.DataFrame]
    runs: tuple[Run, ...]
    control: Control
    seed: int
    features: tuple[str, ...] = ()
    domain: Domain = CORE

    def folds(self, split: str) -> pd.DataFrame:
        """Return the folds of a split by position, as training reads them. Shapes: index as in the table."""
        frame = self.splits[split].filter(like="fold_")
        return frame.set_axis(self.table.frame.index, axis=0) if len(frame) == len(self.table.frame) else frame

    def subsets(self, split: str) -> pd.DataFrame:
        """Return the folds of a split by the key of the row. Shapes: index ROW, columns fold number."""
        row = self.table.column_of(Tag.ROW)
        folds = self.splits[split].drop_duplicates(row).set_index(row).filter(like="fold_")
        return folds.set_axis([int(str(name).removeprefix("fold_")) for name in folds], axis=1)

    def first_split(self) -> str:
        """Return `random`, the easiest split, or else the first split that counts in comparisons."""
        splits = [name for name in self.splits if is_compared(name)] or list(self.splits)
        return "random" if "random" in splits else splits[0]


@dataclass(frozen=True)
class CheckReport:
    """Report of one check: its scope in a few words, one sentence per finding, and numbers."""

    scope: str
    findings: tuple[str, ...] = ()
    numbers: Mapping[str, float | str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class LeakageCheck:
    """One check: its name, its requirement and remedy in one sentence each, and the function that runs it."""

    name: str
    requirement: str
    remedy: str
    run: Callable[[Artifacts], CheckReport]


def training_mask(folds: pd.DataFrame, fold: str) -> np.ndarray:
    """Return which rows one fold is trained on, (n,) bool."""
    return np.asarray(folds[fold].isin(TRAINING_SUBSETS), dtype=bool)


def join_names(names: list[str], maximum: int = 3) -> str:
    """Return the first names, and the number of the others."""
    others = f" and {len(names) - maximum} more" if len(names) > maximum else ""
    return ", ".join(names[:maximum]) + others
