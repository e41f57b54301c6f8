"""Columns to a matrix for models that add up: ridge, nearest neighbours, small networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.encoding._columns import codes, frequent_levels, labels, numbers
from perfcast.schema import Column, Kind


@dataclass(frozen=True)
class _Number:
    """What training showed of one numerical or date column; in logarithms where `log` is set."""

    log: bool
    centre: float
    scale: float  # 0 for a column that was constant or never present: its output is 0
    median: float
    low: float
    high: float
    indicator: bool


@dataclass(frozen=True)
class _Category:
    """The levels of one categorical column that have an output of their own, and which pools exist."""

    levels: list[str]
    rare: bool
    missing: bool


class LinearEncoder:
    """Turns declared columns into standardised numbers; every statistic comes from the rows given to `fit`.

    Numerical: natural logarithm where every training value is positive (with `log`), standardised, a missing value
    is the training median, and an indicator output exists where training had missing values. A value is clipped to
    the training range widened on both sides by `clip` times its width, so that one absurd input cannot carry a
    linear forecast away, while the next generation of machines still lies outside the range seen. A column that was
    constant is 0. Dates are decimal years. Categorical: one output per level seen at least `min_count` times, one for
    all rarer levels, one for missing where training had missing values; a level never seen counts as a rare one.

    Shapes: `transform` gives (n, len(names_)) float64, outputs ordered by column name.
    """

    def __init__(self, *, log: bool = True, clip: float = 1.0, min_count: int = 5) -> None:
        self.log, self.clip, self.min_count = log, clip, min_count
        self.columns_: tuple[Column, ...] = ()
        self.states_: dict[str, _Number | _Category] = {}

    def fit(self, frame: pd.DataFrame, columns: Sequence[Column]) -> Self:
        """Learn the statistics of `columns` from training rows."""
        self.columns_ = tuple(sorted(columns, key=lambda column: column.name))
        self.states_ = {}
        for column in self.columns_:
            if column.kind is Kind.CATEGORICAL:
                values = labels(frame, column)
                levels, rare = frequent_levels(values, self.min_count)
                self.states_[column.name] = _Category(levels, rare, bool(pd.isna(values).any()))
            else:
                self.states_[column.name] = self._describe(numbers(frame, column))
        return self

    @property
    def names_(self) -> list[str]:
        """The name of every output."""
        names: list[str] = []
        for column in self.columns_:
            state = self.states_[column.name]
            if isinstance(state, _Number):
                names += [column.name] + [f"{column.name}=missing"] * state.indicator
            else:
                names += [f"{column.name}={level!r}" for level in state.levels]
                names += [f"{column.name}=rare"] * state.rare + [f"{column.name}=missing"] * state.missing
        return names

    @property
    def variables_(self) -> list[str]:
        """The variable that every output belongs to: all outputs of one category are one, an indicator is its own."""
        variables: list[str] = []
        for column in self.columns_:
            state = self.states_[column.name]
            if isinstance(state, _Number):
                variables += [column.name] + [f"{column.name}=missing"] * state.indicator
            else:
                variables += [column.name] * (len(state.levels) + state.rare + state.missing)
        return variables

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Encode rows with the statistics of training."""
        blocks = [np.empty((len(frame), 0))]
        for column in self.columns_:
            state = self.states_[column.name]
            if isinstance(state, _Number):
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
            kind = _Category if column.kind is Kind.CATEGORICAL else _Number
            encoder.states_[column.name] = kind(**state["columns"][column.name])
        return encoder

    def _describe(self, values: np.ndarray) -> _Number:
        missing = np.isnan(values)
        present = values[~missing]
        if not len(present):
            return _Number(False, 0.0, 0.0, 0.0, 0.0, 0.0, False)
        log = self.log and bool((present > 0).all())
        present = np.log(present) if log else present
        centre, spread = float(present.mean()), float(present.std())
        # Rounding leaves a constant column a spread of about 1e-16 of its size; dividing by that would be noise.
        scale = spread if spread > 1e-9 * max(1.0, abs(centre)) else 0.0
        return _Number(
            log,
            centre,
            scale,
            float(np.median(present)),
            float(present.min()),
            float(present.max()),
            bool(missing.any()),
        )

    def _encode_number(self, values: np.ndarray, state: _Number) -> np.ndarray:
        if state.log:
            values = np.log(np.where(values > 0, values, np.nan))
        missing = np.isnan(values)
        if state.scale:
            margin = self.clip * (state.high - state.low)
            filled = np.where(missing, state.median, np.clip(values, state.low - margin, state.high + margin))
            outputs = [(filled - state.centre) / state.scale]
        else:
            outputs = [np.zeros(len(values))]
        if state.indicator:
            outputs.append(missing.astype(float))
        return np.column_stack(outputs)


def _encode_category(found: np.ndarray, state: _Category) -> np.ndarray:
    outputs = [found[:, None] == np.arange(len(state.levels))]
    if state.rare:
        outputs.append((found == -2)[:, None])
    if state.missing:
        outputs.append((found == -1)[:, None])
    return np.hstack(outputs).astype(float)
