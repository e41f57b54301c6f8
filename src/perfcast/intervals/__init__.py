"""How sure a forecast is: how far a machine is from what was seen, and intervals calibrated on rehearsed forecasts.

A rehearsal asks a split's own kind of question inside its training part (`predictors/_rehearsals.py`). `Support` says
how far each of its machines was from the rows it was fitted on, `Calibration` how large the errors were at such
distances. Neither knows a predictor: they read residuals and tables.
"""

from perfcast.intervals.calibrated import Calibrated
from perfcast.intervals.calibration import LEVEL, TEST, Calibration, questions_of
from perfcast.intervals.correlation import Correlation, Errors, labels_of
from perfcast.intervals.support import Support, gower

__all__ = [
    "LEVEL",
    "TEST",
    "Calibrated",
    "Calibration",
    "Correlation",
    "Errors",
    "Support",
    "gower",
    "labels_of",
    "questions_of",
]
