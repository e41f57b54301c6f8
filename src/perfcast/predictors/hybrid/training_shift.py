"""Shift of machines from the training rows: seen CPU, unseen CPU, or unseen microarchitecture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from perfcast.predictors.analytical.terms import cores_of_rows
from perfcast.schema.table import Column, Tag

ANY = "any"
SEEN_CPU, UNSEEN_CPU, UNSEEN_MICROARCHITECTURE = "seen CPU", "unseen CPU", "unseen microarchitecture"
SHIFTS = (SEEN_CPU, UNSEEN_CPU, UNSEEN_MICROARCHITECTURE, ANY)


@dataclass(frozen=True)
class TrainingShift:
    """CPU models and microarchitectures of the training rows; without an ENTITY column every shift is ANY."""

    entity: str | None
    cpu_models: list[str]
    microarchitectures: list[str]

    @classmethod
    def fit(cls, X: pd.DataFrame, columns: Iterable[Column]) -> Self:
        """Store the CPU models and microarchitectures of training rows."""
        entity = next((column.name for column in columns if Tag.ENTITY in column.tags and column.name in X), None)
        cpu_models = [] if entity is None else sorted(set(X[entity].astype(str)))
        return cls(entity, cpu_models, sorted(set(cores_of_rows(X))))

    def of(self, X: pd.DataFrame) -> np.ndarray:
        """Return the shift of every row, (n,) object."""
        if self.entity is None or self.entity not in X:
            return np.full(len(X), ANY, dtype=object)
        seen = X[self.entity].astype(str).isin(self.cpu_models).to_numpy()
        core = np.isin(cores_of_rows(X).astype(str), self.microarchitectures)
        return np.where(seen, SEEN_CPU, np.where(core, UNSEEN_CPU, UNSEEN_MICROARCHITECTURE)).astype(object)
