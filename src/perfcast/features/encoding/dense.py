"""Declared columns to a matrix of numbers: `LinearEncoder` for linear models and distances, `TreeEncoder` for trees.

Both learn from training rows only, do not depend on the order of columns, ignore text, and write what they learned as
JSON (`to_state`, `from_state`). They take the place of scikit-learn's `ColumnTransformer`: it cannot bound values to a
widened training range, which is less accurate for new machines, and its import would double a cold prediction's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import (
    coded,
    codes,
    distinct_labels,
    feature_columns,
    frequent_levels,
    labels,
    numbers,
)
from perfcast.schema.table import Column, Kind

__all__ = [
    "MISSING_CODE",
    "UNKNOWN_CODE",
    "LinearEncoder",
    "TreeEncoder",
    "coded",
    "codes",
    "distinct_labels",
    "feature_columns",
    "labels",
    "numbers",
]

MISSING_CODE, UNKNOWN_CODE = 0, 1
"""Codes of a missing category, and of a rare one or one that training did not have."""


@dataclass(frozen=True)
class NumberStatistics:
    """Statistics of one numerical or date column in training; in logarithms where `log` is set."""

    log: bool
    center: float
    scale: float  # 0 for a column that was constant or always missing: its output is 0
    median: float
    low: float
    high: float
    indicator: bool


@dataclass(frozen=True)
class CategoryLevels:
    """Levels of one categorical column that have a separate output, and whether the pools exist."""

    levels: list[str]
    rare: bool
    missing: bool


class LinearEncoder:
    """Encode declared columns as standardized numbers; every statistic comes from the rows of `fit`.

    Numerical columns are natural logarithms where every training value is positive (with `log`), and standardized. A
    missing value is the training median, and an indicator output exists where training had missing values. Values are
    clipped to the training range, widened on both sides by `clip` times its width. An absurd input then has a bounded
    effect, and machines of the next generation are still outside the training range. A constant column is 0. Dates are
    decimal years. Categorical columns have one output per level of at least `min_count` rows, one for all rarer levels,
    and one for missing where training had missing values. A level that training did not have counts as a rare one.

    Shapes: `transform` gives (n, len(names_)) float64, outputs ordered by column name.
    """

    def __init__(self, *, log: bool = True, clip: float = 1.0, min_count: int = 5) -> None:
        self.log, self.clip, self.min_count = log, clip, min_count
        self.columns_: tuple[Column, ...] = ()
        self.states_: dict[str, NumberStatistics | CategoryLevels] = {}

    def fit(self, frame: pd.DataFrame, columns: Sequence[Column]) -> Self:
        """Learn the statistics of `columns` from training rows."""
        self.columns_ = tuple(sorted(columns, key=lambda column: column.name))
        self.states_ = {}
        for column in self.columns_:
            if column.kind is Kind.CATEGORICAL:
                values = labels(frame, column)
                levels, rare = frequent_levels(values, self.min_count)
                self.states_[column.name] = CategoryLevels(levels, rare, bool(pd.isna(values).any()))
            else:
                self.states_[column.name] = self._describe(numbers(frame, column))
        return self

    @property
    def names_(self) -> list[str]:
        """Names of the outputs."""
        names: list[str] = []
        for column in self.columns_:
            state = self.states_[column.name]
            if isinstance(state, NumberStatistics):
                names += [column.name] + [f"{column.name}=missing"] * state.indicator
            else:
                names += [f"{column.name}={level!r}" for level in state.levels]
                names += [f"{column.name}=rare"] * state.rare + [f"{column.name}=missing"] * state.missing
        return names

    @property
    def variables_(self) -> list[str]:
        """Variables of the outputs: all outputs of a category are one variable, and an indicator is another."""
        variables: list[str] = []
        for column in self.columns_:
            state = self.states_[column.name]
            if isinstance(state, NumberStatistics):
                variables += [column.name] + [f"{column.name}=missing"] * state.indicator
            else:
                variables += [column.name] * (len(state.levels) + state.rare + state.missing)
        return variables

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Encode rows with the statistics of training."""
        blocks = [np.empty((len(frame), 0))]
        for column in self.columns_:
            state = self.states_[column.name]
            if isinstance(state, NumberStatistics):
                blocks.append(self._encode_number(numbers(frame, column), state))
            else:
                blocks.append(_encode_category(codes(frame, column, state.levels), state))
        return np.hstack(blocks)

    def to_state(self) -> dict[str, Any]:
        """Return all that was learned as JSON values."""
        return {
            "log": self.log,
            "clip": self.clip,
            "min_count": self.min_count,
            "columns": {name: asdict(state) for name, state in self.states_.items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], columns: Sequence[Column]) -> Self:
        """Build the encoder that gave `state` for these declarations."""
        encoder = cls(log=state["log"], clip=state["clip"], min_count=state["min_count"])
        encoder.columns_ = tuple(sorted(columns, key=lambda column: column.name))
        for column in encoder.columns_:
            kind = CategoryLevels if column.kind is Kind.CATEGORICAL else NumberStatistics
            encoder.states_[column.name] = kind(**state["columns"][column.name])
        return encoder

    def _describe(self, values: np.ndarray) -> NumberStatistics:
        missing = np.isnan(values)
        present = values[~missing]
        if not len(present):
            return NumberStatistics(False, 0.0, 0.0, 0.0, 0.0, 0.0, False)
        log = self.log and bool((present > 0).all())
        present = np.log(present) if log else present
        center, spread = float(present.mean()), float(present.std())
        # Rounding leaves a constant column a spread of about 1e-16 of its size; dividing by that would be noise.
        scale = spread if spread > 1e-9 * max(1.0, abs(center)) else 0.0
        return NumberStatistics(
            log,
            center,
            scale,
            float(np.median(present)),
            float(present.min()),
            float(present.max()),
            bool(missing.any()),
        )

    def _encode_number(self, values: np.ndarray, state: NumberStatistics) -> np.ndarray:
        if state.log:
            values = np.log(np.where(values > 0, values, np.nan))
        missing = np.isnan(values)
        if state.scale:
            margin = self.clip * (state.high - state.low)
            filled = np.where(missing, state.median, np.clip(values, state.low - margin, state.high + margin))
            outputs = [(filled - state.center) / state.scale]
        else:
            outputs = [np.zeros(len(values))]
        if state.indicator:
            outputs.append(missing.astype(float))
        return np.column_stack(outputs)


def _encode_category(ranks: np.ndarray, state: CategoryLevels) -> np.ndarray:
    outputs = [ranks[:, None] == np.arange(len(state.levels))]
    if state.rare:
        outputs.append((ranks == -2)[:, None])
    if state.missing:
        outputs.append((ranks == -1)[:, None])
    return np.hstack(outputs).astype(float)


class TreeEncoder:
    """Encode declared columns as numbers that trees can split; every statistic comes from the rows of `fit`.

    Numerical columns stay as they are and dates become decimal years. Missing numbers stay NaN. With `fill` they take
    one value per column below all values of training, so a single split separates them. Categorical columns become
    ordinal codes: 0 missing, 1 fewer than `min_count` rows or not in training, then the levels in alphabetical order.

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
        """Names of the outputs."""
        return [column.name for column in self.columns_]

    @property
    def categorical_(self) -> list[int]:
        """Positions of the outputs that are codes."""
        return [index for index, column in enumerate(self.columns_) if column.kind is Kind.CATEGORICAL]

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Encode rows with the statistics of training."""
        encoded = np.empty((len(frame), len(self.columns_)))
        for index, column in enumerate(self.columns_):
            if column.kind is Kind.CATEGORICAL:
                ranks = codes(frame, column, self.levels_[column.name])
                encoded[:, index] = np.select([ranks == -1, ranks == -2], [MISSING_CODE, UNKNOWN_CODE], ranks + 2)
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
