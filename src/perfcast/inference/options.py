"""Options of a prediction, with the defaults of every door."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import pandas as pd

from perfcast.inference.machine_fields import MONTH, is_month
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError


@dataclass(frozen=True)
class PredictOptions:
    """Options of a prediction.

    `when`: month of the measurement (None: see `Champion.find_month`). `assume`: whether usual values are imputed.
    `neighbors`: number of measured results shown. `explain`: whether to add values and the basis, with `drivers` those
    and the typical machine as well. `tasks`: those with an answer; none means all.
    """

    level: float = LEVEL
    when: pd.Timestamp | None = None
    assume: bool = True
    neighbors: int = 3
    explain: bool = True
    drivers: bool = True
    tasks: tuple[str, ...] = ()


def make_options(
    *,
    level: float | None = None,
    when: str | date | None = None,
    assume: bool = True,
    neighbors: int = PredictOptions.neighbors,
    explain: bool = True,
    prefix: str = "",
) -> PredictOptions:
    """Return the options of a request of a user: commands, HTTP, Python and MLflow have these defaults.

    Args: `level` is LEVEL without a value; `prefix` stands before the names in messages.
    Raises: UserError for a level or a month that cannot be.
    """
    checked = check_level(LEVEL if level is None else level, f"{prefix}level")
    return PredictOptions(checked, read_month(when, f"{prefix}when"), assume, neighbors, explain)


def read_month(when: str | date | None, name: str = "when") -> pd.Timestamp | None:
    """Return the month of a measurement, as `2026-03` or a date; None stays.

    Raises: UserError, which names the option `name`, when it is no month.
    """
    if when is None:
        return None
    text = f"{when:%Y-%m}" if isinstance(when, date) else when
    if not isinstance(text, str) or not is_month(text):
        raise UserError(f"{name} must be {MONTH}", f"it is {when!r}")
    return pd.Timestamp(when)


def check_level(level: float, name: str = "level") -> float:
    """Return the level of intervals. Raises: UserError, which names the option `name`, unless it is inside 0 to 1."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        fact = f"it is {level:g}" if isinstance(level, (int, float)) else f"it is {level!r}"
        raise UserError(f"{name} must be between 0 and 1", fact, "0.9 means 90 %")
    return float(level)
