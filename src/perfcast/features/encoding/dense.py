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

from perfcast.features.encoding.columns import codes, fit_vocabulary, labels, number_matrix, number_values, numbers
from perfcast.schema.table import Column, Kind

MISSING_CODE = 0
UNKNOWN_CODE = 1
"""Codes of a missing category, and of a rare one or one that training did not have."""

_MIN_DEVIATION = 0.15
"""Smallest standard deviation as a share of the range; see `LinearEncoder`. Chosen on backtests of forward splits."""


@dataclass(frozen=True)
class NumberStatistics:
    """Statistics of one numerical or date column in training, and its encoding; in logarithms where `log` is set."""

    log: bool
    center: float
    scale: float  # 0 for a column that was constant or always missing: its output is 0
    imputed: float  # the median, which stands for a missing value
    low: float
    high: float
    missing: bool

    @classmethod
    def fit(cls, values: np.ndarray, *, log: bool) -> Self:
        """Take the statistics of training values, in logarithms where all are positive and `log` is set."""
        present = values[~np.isnan(values)]
        if not len(present):
            return cls(False, 0.0, 0.0, 0.0, 0.0, 0.0, False)
        log = log and bool((present > 0).all())
        present = np.log(present) if log else present
        center = float(present.mean())
        spread = float(present.std())
        # Rounding leaves a constant column a spread of about 1e-16 of its size; dividing by that would be noise.
        low = float(present.min())
        median = float(np.median(present))
        high = float(present.max())
        scale = max(spread, _MIN_DEVIATION * (high - low)) if spread > 1e-9 * max(1.0, abs(center)) else 0.0
        return cls(log, center, scale, median, low, high, len(present) < len(values))

    def outputs(self, name: str) -> list[tuple[str, str]]:
        """Return the name and the variable of every output of the column `name`."""
        return [(name, name), (f"{name}=missing", f"{name}=missing")][: 1 + self.missing]

    def encode(self, frame: pd.DataFrame, column: Column, clip: float) -> np.ndarray:
        """Return the outputs of a column. Shapes: (n, outputs)."""
        values = numbers(frame, column)
        if self.log:
            values = np.log(np.where(values > 0, values, np.nan))
        missing = np.isnan(values)
        encoded = np.zeros(len(values))
        if self.scale:
            margin = clip * (self.high - self.low)
            imputed = np.where(missing, self.imputed, np.clip(values, self.low - margin, self.high + margin))
            encoded = (imputed - self.center) / self.scale
        return np.column_stack([encoded, missing.astype(float)][: 1 + self.missing])


@dataclass(frozen=True)
class CategoryVocabulary:
    """Values of one categorical column that have a separate output, and whether rarer and missing ones have one."""

    vocabulary: list[str]
    rare: bool
    missing: bool

    @classmethod
    def fit(cls, values: np.ndarray, min_count: int) -> Self:
        """Take the vocabulary of training values."""
        return cls(*fit_vocabulary(values, min_count), bool(pd.isna(values).any()))

    def outputs(self, name: str) -> list[tuple[str, str]]:
        """Return the name and the variable of every output of the column `name`."""
        names = [repr(value) for value in self.vocabulary] + ["rare"] * self.rare + ["missing"] * self.missing
        return [(f"{name}={value}", name) for value in names]

    def encode(self, frame: pd.DataFrame, column: Column, clip: float) -> np.ndarray:
        """Return the outputs of a column; nothing is clipped. Shapes: (n, outputs)."""
        known = codes(frame, column, number_values(self.vocabulary))
        distinct = [*range(len(self.vocabulary)), *[-2] * self.rare, *[-1] * self.missing]
        return np.asarray((known[:, None] == np.array(distinct, dtype=int)).astype(float))


class LinearEncoder:
    """Encode declared columns as standardized numbers; every statistic comes from the rows of `fit`.

    Numerical columns are natural logarithms where every training value is positive (with `log`), and standardized. A
    missing value is imputed by the training median, and has an indicator output where training had missing values.
    Values are clipped to the training range, widened on both sides by `clip` times its width. An absurd input then has
    a bounded effect, and machines of the next generation are still outside the training range. A column that hardly
    varies is divided by a share of its range: a few odd rows cannot give it a steep slope. A constant column is 0.
    Dates are decimal years. Categorical columns have one output per value of at least `min_count` rows, one for all
    rarer values, and one for missing where training had missing values. An unknown value counts as a rare one.

    Shapes: `transform` gives (n, len(names_)) float64, outputs ordered by column name.
    """

    def __init__(self, *, log: bool = True, clip: float = 1.0, min_count: int = 5) -> None:
        self.log = log
        self.clip = clip
        self.min_count = min_count
        self.columns_: tuple[Column, ...] = ()
        self.states_: dict[str, NumberStatistics | CategoryVocabulary] = {}

    def fit(self, frame: pd.DataFrame, columns: Sequence[Column]) -> Self:
        """Learn the statistics of `columns` from training rows."""
        self.columns_ = tuple(sorted(columns, key=lambda column: column.name))
        self.states_ = {
            column.name: CategoryVocabulary.fit(labels(frame, column), self.min_count)
            if column.kind is Kind.CATEGORICAL
            else NumberStatistics.fit(numbers(frame, column), log=self.log)
            for column in self.columns_
        }
        return self

    @property
    def names_(self) -> list[str]:
        """Names of the outputs."""
        return [name for column in self.columns_ for name, _ in self.states_[column.name].outputs(column.name)]

    @property
    def variables_(self) -> list[str]:
        """Variables of the outputs: all outputs of a category are one variable, and an indicator is another."""
        return [name for column in self.columns_ for _, name in self.states_[column.name].outputs(column.name)]

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Encode rows with the statistics of training."""
        blocks = (self.states_[column.name].encode(frame, column, self.clip) for column in self.columns_)
        return np.hstack([np.empty((len(frame), 0)), *blocks])

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
            kind = CategoryVocabulary if column.kind is Kind.CATEGORICAL else NumberStatistics
            encoder.states_[column.name] = kind(**state["columns"][column.name])
        return encoder


class TreeEncoder:
    """Encode declared columns as numbers that trees can split; every statistic comes from the rows of `fit`.

    Numerical columns stay as they are and dates become decimal years. Missing numbers stay NaN. With `impute` they
    take one value per column below all values of training, so a single split separates them. Categorical columns become
    ordinal codes: 0 missing, 1 rare (fewer than `min_count` rows) or unknown, then the vocabulary in its order.

    Shapes: `transform` gives (n, number of columns) float64, ordered by column name.
    """

    def __init__(self, *, impute: bool = False, min_count: int = 1) -> None:
        self.impute = impute
        self.min_count = min_count
        self.columns_: tuple[Column, ...] = ()
        self.vocabularies_: dict[str, list[str]] = {}
        self.imputed_: dict[str, float] = {}
        self._orders: dict[str, dict[str, int]] = {}

    def fit(self, frame: pd.DataFrame, columns: Sequence[Column]) -> Self:
        """Learn the vocabularies and the values that stand for missing ones from training rows."""
        self.columns_ = tuple(sorted(columns, key=lambda column: column.name))
        self.vocabularies_ = {}
        self.imputed_ = {}
        self._orders = {}
        for column in self.columns_:
            if column.kind is Kind.CATEGORICAL:
                self.vocabularies_[column.name], _ = fit_vocabulary(labels(frame, column), self.min_count)
            elif self.impute:
                values = numbers(frame, column)
                present = values[~np.isnan(values)]
                width = float(np.ptp(present)) if len(present) else 0.0
                self.imputed_[column.name] = float(present.min()) - (width or 1.0) if len(present) else 0.0
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
        is_number = np.array([column.kind is not Kind.CATEGORICAL for column in self.columns_], dtype=bool)
        numerical = [column for column in self.columns_ if column.kind is not Kind.CATEGORICAL]
        values = number_matrix(frame, numerical)
        imputed = np.array([self.imputed_[column.name] if self.impute else np.nan for column in numerical])
        encoded[:, is_number] = np.where(np.isnan(values), imputed, values)
        for index in self.categorical_:
            column = self.columns_[index]
            encoded[:, index] = codes(frame, column, self._order_of(column.name))
        known = encoded[:, ~is_number]
        encoded[:, ~is_number] = np.select([known == -1, known == -2], [MISSING_CODE, UNKNOWN_CODE], known + 2)
        return encoded

    def _order_of(self, name: str) -> dict[str, int]:
        """Return the number of every value of a vocabulary, made at its first use."""
        if name not in self._orders:
            self._orders[name] = number_values(self.vocabularies_[name])
        return self._orders[name]

    def to_state(self) -> dict[str, Any]:
        """Return all that was learned as JSON values."""
        return {
            "impute": self.impute,
            "min_count": self.min_count,
            "vocabularies": self.vocabularies_,
            "imputed": self.imputed_,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], columns: Sequence[Column]) -> Self:
        """Build the encoder that gave `state` for these declarations."""
        encoder = cls(impute=state["impute"], min_count=state["min_count"])
        encoder.columns_ = tuple(sorted(columns, key=lambda column: column.name))
        encoder.vocabularies_ = dict(state["vocabularies"])
        encoder.imputed_ = dict(state["imputed"])
        return encoder
