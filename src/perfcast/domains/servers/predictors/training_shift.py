"""Shift of machines from the training rows: seen CPU, unseen CPU, or unseen microarchitecture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from perfcast.domains.servers.predictors.terms import cores_of_rows
from perfcast.features.encoding.columns import map_labels
from perfcast.schema.table import Column, Kind, Role, Tag

ANY = "any"
SEEN_CPU = "seen CPU"
UNSEEN_CPU = "unseen CPU"
UNSEEN_MICROARCHITECTURE = "unseen microarchitecture"
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
        models = set(self.cpu_models)
        designs = set(self.microarchitectures)
        entity = Column(self.entity, Kind.CATEGORICAL, Role.KEY, "")
        seen = map_labels(X, entity, models.__contains__, False).astype(bool)
        core = np.array([design in designs for design in cores_of_rows(X).tolist()], dtype=bool)
        return np.where(seen, SEEN_CPU, np.where(core, UNSEEN_CPU, UNSEEN_MICROARCHITECTURE)).astype(object)
