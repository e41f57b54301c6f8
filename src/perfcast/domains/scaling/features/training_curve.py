"""Results of a run under way: the last one, the level and the slope, relative to the level."""

from __future__ import annotations

import numpy as np

from perfcast.features.feature_math import append, arrays, feature
from perfcast.schema.table import Table

NOW, LEVEL, SLOPE = "value_now", "value_level", "value_slope"
RELATIVE_SLOPE = "relative_slope"
REQUIRES = (NOW, LEVEL, SLOPE, "tokens_per_param")
_STEEPEST = 10.0


def derive(table: Table) -> Table:
    """Append slope / level, and logarithms of the results so far and of the length.

    Raises: ValueError when a column of `REQUIRES` is missing.
    """
    values = arrays(table, REQUIRES)
    level = values[LEVEL]
    ratio = np.divide(values[SLOPE], level, out=np.full(len(level), np.nan), where=level > 0)
    meaning = "change of the result per unit of ln progress, over the level"
    column = feature(RELATIVE_SLOPE, "curve", "1", meaning, -_STEEPEST, _STEEPEST)
    values[RELATIVE_SLOPE] = np.clip(ratio, -_STEEPEST, _STEEPEST)
    return append(table, [column], values, logs=[NOW, LEVEL, "tokens_per_param"])
