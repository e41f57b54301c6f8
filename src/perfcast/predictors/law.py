"""`law`: announced gains with fixed coefficients, and physical terms around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from perfcast.predictors._law import LawBase, Part
from perfcast.predictors._law_terms import LawTerms

_PER_CLOCK_SHARE = 0.85
"""How much of an announced gain per clock shows in a score: a part of every run waits for memory. `time_law` has that
part as a term and takes the gain whole. Settled in rehearsals on results published before 2023 (Ice Lake and Milan from
2021-04, Genoa and Alder Lake in 2022): 0.8 to 0.9 were best and alike; the whole gain was 0.1 to 0.4 points behind."""


class LawPredictor(LawBase):
    """The logarithm of a score is what was announced of the core (`LawTerms.announced`) plus the law's terms.

    The coefficients of announcements are fixed: a handful of generations cannot teach them, and learned ones explode.
    The steps of cores and compilers correct it for generations that were measured; one that was not is its predecessor
    plus what its maker announced.
    """

    def __init__(
        self,
        *,
        strengths: Sequence[float] = (1e-4, 3e-4, 1e-3),
        default_strength: float = 3e-4,
        memories: Sequence[float] = (0.0, 3.0),
        default_memory: float = 3.0,
        announced: bool = True,
    ) -> None:
        self.strengths = strengths
        self.default_strength = default_strength
        self.memories = memories
        self.default_memory = default_memory
        self.announced = announced

    def _fit_structure(self, part: Part, terms: LawTerms) -> Any:
        return {}

    def _structure(self, X: pd.DataFrame, tasks: np.ndarray, terms: LawTerms, state: Any) -> np.ndarray:
        return np.repeat(terms.announced(X, _PER_CLOCK_SHARE)[:, None], len(self.targets_), axis=1)
