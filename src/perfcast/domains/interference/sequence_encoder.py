"""Sequence columns to numbers of tokens: the encoder of predictors that read seconds one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.tokens import (
    CLIP_DEVIATIONS,
    TokenEncoder,
    Tokens,
    TokenSpec,
)
from perfcast.schema.sequences import to_matrix
from perfcast.schema.table import Column, Kind, Role, select

_MIN_DEVIATION = 1e-4
"""A metric that varies less, in logarithms of its usual size, makes no token."""


@dataclass(frozen=True)
class SequenceSpec(TokenSpec):
    """Sizes of encoded rows with sequences.

    The numbers of a row are `n_static` plain ones, then `n_metrics` sequences of `n_steps`, one after another.
    """

    n_static: int = 0
    n_metrics: int = 0
    n_steps: int = 1


@dataclass(frozen=True)
class _Sequence:
    """One metric: logarithms of 1 + size / `unit`, with their sign, standardized with `mean` and `deviation`."""

    name: str
    group: str
    unit: float
    mean: float
    deviation: float

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return standardized values, NaN where missing. Shapes: (n, steps)."""
        standardized = (_compress(values, self.unit) - self.mean) / self.deviation
        return np.clip(standardized, -CLIP_DEVIATIONS, CLIP_DEVIATIONS)


class SequenceEncoder(TokenEncoder):
    """Encode sequences, and the other columns as `TokenEncoder` does; all statistics are those of the fitted rows.

    Rates of a second span many orders of magnitude, hence the logarithms. A table without sequences is encoded as rows
    of one step, whose metrics are its numerical columns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sequences: tuple[_Sequence, ...] = ()
        self.n_steps = 1

    def fit(self, frame: pd.DataFrame, columns: Iterable[Column]) -> Self:
        """Take the statistics and vocabularies of the rows of `frame`."""
        declared = list(columns)
        super().fit(frame, declared)
        sequences = select(declared, kind=Kind.SEQUENCE, role=Role.FEATURE)
        ordered = sorted(sequences, key=lambda column: (column.group, column.name))
        fitted = [_fit_sequence(column, to_matrix(frame[column.name])) for column in ordered]
        self.sequences = tuple(sequence for sequence in fitted if sequence is not None)
        self.n_steps = 1
        if self.sequences:
            first_row = frame[self.sequences[0].name].iloc[:1]
            self.n_steps = to_matrix(first_row).shape[1]
        return self

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups that have tokens or sequences, sorted."""
        groups = {token.group for token in self._tokens}
        groups |= {sequence.group for sequence in self.sequences}
        return tuple(sorted(groups)) or ("none",)

    @property
    def spec(self) -> SequenceSpec:
        """Sizes of the encoded rows, for a network."""
        plain = super().spec
        sizes = dict(vars(plain))
        if not self.sequences:
            return SequenceSpec(**sizes, n_metrics=plain.n_numbers)
        places = [self.groups.index(sequence.group) for sequence in self.sequences]
        sizes["number_groups"] = [
            *plain.number_groups,
            *np.repeat(places, self.n_steps).tolist(),
        ]
        return SequenceSpec(
            **sizes,
            n_static=plain.n_numbers,
            n_metrics=len(self.sequences),
            n_steps=self.n_steps,
        )

    def transform(self, frame: pd.DataFrame) -> Tokens:
        """Encode rows; the numbers of sequences follow the others. Raises: ValueError for windows of another length."""
        plain = super().transform(frame)
        if not self.sequences:
            return plain
        first = plain.numbers.shape[1]
        steps = self.n_steps
        shape = (len(frame), first + steps * len(self.sequences))
        numbers = np.empty(shape, dtype=np.float32)
        missing = np.empty(shape, dtype=np.float32)
        numbers[:, :first] = plain.numbers
        missing[:, :first] = plain.missing
        for place, sequence in enumerate(self.sequences):
            values = to_matrix(frame[sequence.name])
            if values.shape[1] != steps:
                raise ValueError(f"{sequence.name} has {values.shape[1]} steps, and training had {steps}")
            encoded = sequence.encode(values)
            unknown = np.isnan(encoded)
            start = first + steps * place
            span = slice(start, start + steps)
            missing[:, span] = unknown
            numbers[:, span] = np.where(unknown, 0.0, encoded)
        return Tokens(numbers, missing, plain.codes, plain.strings, plain.grams)

    def to_state(self) -> dict[str, Any]:
        """Return what was learned as values that JSON can hold."""
        state = super().to_state()
        state["sequences"] = [asdict(sequence) for sequence in self.sequences]
        state["n_steps"] = self.n_steps
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild an encoder from `to_state()`."""
        encoder = super().from_state(state)
        encoder.sequences = tuple(_Sequence(**entry) for entry in state["sequences"])
        encoder.n_steps = int(state["n_steps"])
        return encoder


def _compress(values: np.ndarray, unit: float) -> np.ndarray:
    return np.asarray(np.sign(values) * np.log1p(np.abs(values) / unit))


def _fit_sequence(column: Column, windows: np.ndarray) -> _Sequence | None:
    values = windows[np.isfinite(windows)].astype(float)
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return None
    unit = float(np.median(sizes))
    compressed = _compress(values, unit)
    deviation = float(compressed.std())
    if deviation < _MIN_DEVIATION:
        return None
    mean = float(compressed.mean())
    return _Sequence(column.name, column.group, unit, mean, deviation)
