"""How new a machine is to a training part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.predictors._law_terms import cores_of_rows
from perfcast.schema import Column, Tag

ANY = "any"
KNOWN_PART, NEW_PART, NEW_CORE = "known part", "new part", "new core"
NOVELTIES = (KNOWN_PART, NEW_PART, NEW_CORE, ANY)


@dataclass(frozen=True)
class Novelty:
    """The parts and cores that training knows; without an ENTITY column every machine is one of no known kind."""

    entity: str | None
    parts: frozenset[str]
    cores: frozenset[str]

    @classmethod
    def fit(cls, X: pd.DataFrame, columns: Iterable[Column]) -> Self:
        """Take the parts and cores of training rows."""
        entity = next((column.name for column in columns if Tag.ENTITY in column.tags and column.name in X), None)
        parts = frozenset() if entity is None else frozenset(X[entity].astype(str))
        return cls(entity, parts, frozenset(cores_of_rows(X)))

    def of(self, X: pd.DataFrame) -> np.ndarray:
        """Return the novelty of every row, (n,) object."""
        if self.entity is None or self.entity not in X:
            return np.full(len(X), ANY, dtype=object)
        known = X[self.entity].astype(str).isin(self.parts).to_numpy()
        core = np.isin(cores_of_rows(X).astype(str), list(self.cores))
        return np.where(known, KNOWN_PART, np.where(core, NEW_PART, NEW_CORE)).astype(object)

    def to_state(self) -> dict[str, Any]:
        """Return what was learned as values that JSON can hold."""
        return {"entity": self.entity, "parts": sorted(self.parts), "cores": sorted(self.cores)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from `to_state()`."""
        return cls(state["entity"], frozenset(state["parts"]), frozenset(state["cores"]))
