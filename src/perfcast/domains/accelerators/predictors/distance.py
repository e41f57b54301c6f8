"""Distance of rows from the training rows, and what learners on a residual count there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.predictors.residual_stack import EqualWeights, ResidualStack, Weights
from perfcast.predictors.task_rows import POOLED
from perfcast.schema.table import Column

PAIR = "known pair"
ENTITY = "new pair"
GENERATION = "new accelerator"
NEW = "new generation"
SHARES = {
    PAIR: 0.75,
    ENTITY: 0.5,
    GENERATION: 0.25,
    NEW: 0.0,
}
"""Share of the learners by distance: the farther the accelerator, the less they know. Set by hand, not on data."""
_LEVELS = (
    ("task", "accelerator"),
    ("accelerator",),
    ("generation",),
)


@dataclass(frozen=True)
class PairShift:
    """Pairs of task and entity, entities and generations of the training rows."""

    pairs: list[str]
    entities: list[str]
    generations: list[str]

    @classmethod
    def fit(cls, X: pd.DataFrame, columns: Iterable[Column]) -> Self:
        """Store the pairs, entities and generations of training rows."""
        del columns
        return cls(*(sorted(set(join(X, level))) for level in _LEVELS))

    def of(self, X: pd.DataFrame) -> np.ndarray:
        """Return the distance of every row, (n,) object."""
        known = zip(_LEVELS, (self.pairs, self.entities, self.generations), strict=True)
        pair, entity, generation = (np.isin(join(X, level).astype(str), names) for level, names in known)
        distance = np.select([pair, entity, generation], [PAIR, ENTITY, GENERATION], NEW)
        return distance.astype(object)


@dataclass(kw_only=True)
class DistanceWeights(EqualWeights):
    """Weights of learners that fall with the distance of the accelerator."""

    shift_: PairShift = field(init=False)

    def fit(self, X: pd.DataFrame, columns: Sequence[Column]) -> None:
        """Store what the components are fitted to."""
        self.shift_ = PairShift.fit(X, columns)

    def groups(self, X: pd.DataFrame, columns: Sequence[Column]) -> np.ndarray:
        """Return the distance of every row."""
        return self.shift_.of(X)

    def choose(
        self,
        stack: ResidualStack,
        X: pd.DataFrame,
        log_y: np.ndarray,
        validation: np.ndarray,
    ) -> dict[str, Weights]:
        """Return the share of each distance, divided among the learners."""
        names = stack.learner_names
        shares = {**SHARES, POOLED: SHARES[NEW]}
        return {distance: dict.fromkeys(names, share / len(names)) for distance, share in shares.items()}

    def to_state(self) -> dict[str, Any]:
        """Return what was fitted to."""
        return asdict(self.shift_)

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over what was fitted to."""
        self.shift_ = PairShift(**state)


def join(X: pd.DataFrame, names: Iterable[str]) -> np.ndarray:
    """Return one text per row of its values in the columns that are there, nothing where one is missing, (n,)."""
    joined: np.ndarray = np.full(len(X), "", dtype=object)
    for name in names:
        if name in X:
            texts = X[name].astype(object).where(X[name].notna(), "").astype(str)
            joined = joined + texts.to_numpy(object) + "\x1f"
    return joined
