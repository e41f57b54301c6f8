"""What a fitted predictor needs to say how sure it is: how far machines are, and how wrong it was at such distances."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from perfcast.intervals.calibration import LEVEL, Calibration
from perfcast.intervals.correlation import Correlation
from perfcast.intervals.support import Support
from perfcast.io import read_json, write_json


@dataclass(frozen=True)
class Calibrated:
    """A calibration with the support of the rows that the final predictor was fitted on."""

    support: Support
    calibration: Calibration
    correlation: Correlation | None = None
    """What a measured score says of other forecasts' errors; None where that was not learned."""

    def intervals(
        self, X: pd.DataFrame, questions: np.ndarray, when: pd.Series | None = None, level: float = LEVEL
    ) -> pd.DataFrame:
        """Return how sure a forecast of every row is.

        Shapes: X (n, columns), questions (n,) as they were calibrated -> index as in X, columns half (half-width in
        logarithms), typical (absolute error, in logarithms), support (1: the like was seen) and unlike (the group of
        columns that takes most of the support, "" where nothing does).
        """
        far = self.support.distances(X, when)
        return pd.DataFrame(
            {
                "half": self.calibration.half_widths(questions, far, level),
                "typical": self.calibration.typical(far),
                "support": self.calibration.support(far),
                "unlike": self.calibration.unlike(far),
            },
            index=X.index,
        )

    def save(self, folder: Path) -> None:
        """Write both."""
        self.support.save(folder)
        write_json(folder / "calibration.json", self.calibration.to_state())
        if self.correlation is not None:
            write_json(folder / "correlation.json", self.correlation.to_state())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        path = folder / "correlation.json"
        correlation = Correlation.from_state(read_json(path)) if path.is_file() else None
        return cls(Support.load(folder), Calibration.from_state(read_json(folder / "calibration.json")), correlation)
