"""Columns to a matrix for decision trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.encoding._columns import codes, frequent_levels, labels, numbers
from perfcast.schema import Column, Kind

MISSING_CODE, UNKNOWN_CODE = 0, 1


class TreeEncoder:
    """Turns declared columns into numbers that trees can split; every statistic comes from the rows given to `fit`.

    Numerical columns stay as they are and dates become decimal years. Missing numbers stay NaN or, with `fill`, take
    one value per column below everything seen in training, which a single split can tell apart. Categorical columns
    become ordinal codes: 0 missing, 1 rarer than `min_count` or never seen, then the levels in alphabetical order.

    Shapes: `transform` gives (n, number of columns) float64, ordered by column name.
    """

    def __init__(self, *, fill: bool = False, min_count: int = 1) -> None:
        self.fill, self.min_count = fill, min_count
        self.columns_: tuple[Column, ...] = ()
        self.levels_: dict[str, list[str]] = {}
        self.fills_: dict[str, float] = {}

    def fit(self, frame: pd.DataFrame, columns: Sequence[Column]) -> Self:
        """Learn the levels and the values that stand for missing from training rows."""
        self.columns_ = tuple(sorted(columns, key=lambda column: column.name))
        self.levels_, self.fills_ = {}, {}
        for column in self.columns_:
            if column.kind is Kind.CATEGORICAL:
                self.levels_[column.name], _ = frequent_levels(labels(frame, column), self.min_count)
            elif self.fill:
                values = numbers(frame, column)
                present = values[~np.isnan(values)]
                width = float(np.ptp(present)) if len(present) else 0.0
                self.fills_[column.name] = float(present.min()) - (width or 1.0) if len(present) else 0.0
        return self

    @property
    def names_(self) -> list[str]:
        """The name of every output."""
        return [column.name for column in self.columns_]

    @property
    def categorical_(self) -> list[int]:
        """The positions of the outputs that are codes."""
        return [index for index, column in enumerate(self.columns_) if column.kind is Kind.CATEGORICAL]

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Encode rows with what training showed."""
        encoded = np.empty((len(frame), len(self.columns_)))
        for index, column in enumerate(self.columns_):
            if column.kind is Kind.CATEGORICAL:
                found = codes(frame, column, self.levels_[column.name])
                encoded[:, index] = np.select([found == -1, found == -2], [MISSING_CODE, UNKNOWN_CODE], found + 2)
            else:
                values = numbers(frame, column)
                encoded[:, index] = (
                    np.where(np.isnan(values), self.fills_[column.name], values) if self.fill else values
                )
        return encoded

    def to_state(self) -> dict[str, Any]:
        """Return all that was learned as JSON values."""
        return {"fill": self.fill, "min_count": self.min_count, "levels": self.levels_, "fills": self.fills_}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], columns: Sequence[Column]) -> Self:
        """Build the encoder that gave `state` for these declarations."""
        encoder = cls(fill=state["fill"], min_count=state["min_count"])
        encoder.columns_ = tuple(sorted(columns, key=lambda column: column.name))
        encoder.levels_, encoder.fills_ = dict(state["levels"]), dict(state["fills"])
        return encoder
