"""Questions about the future after training on the last years only: how much history is enough."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema import Table, Tag
from perfcast.splits._audit import Split, not_before
from perfcast.splits._parts import as_frame, assigned, by_key
from perfcast.splits._shrunken import shrinks
from perfcast.splits.forward import VALID_MONTHS, forward_2023, forward_2024

_VALID_PER_YEAR = 3
"""Months set aside for choices per year of history: a quarter of a short one, so that most of it is left to fit on."""


def last_years(base: Split, years: int, *, before: str) -> Split:
    """Make the split that asks as `base` does after training on the last `years` before month `before`, its cut.

    Valid are the last three months of one year, six of two, nine of three, and twelve, as of `base`, of more.
    """
    since = pd.Timestamp(before) - pd.DateOffset(years=years)

    def make(table: Table, seed: int) -> pd.DataFrame:
        ordered = by_key(table)
        parts = base(table, seed)["fold_0"].loc[ordered.frame.index].to_numpy(dtype=object)
        time = ordered.frame[ordered.column_of(Tag.TIME)]
        learned = np.isin(parts, ["train", "valid"]) & (time >= since).to_numpy()
        months = min(VALID_MONTHS, _VALID_PER_YEAR * years)
        valid = learned & (time > time[learned].max() - pd.DateOffset(months=months)).to_numpy()
        test = parts == "test"
        return as_frame(table, ordered, [assigned(test, valid, ~(learned | test))])

    told = "year" if years == 1 else f"{years} years"
    make.__doc__ = f"Ask as {base.__name__} does, after training on the last {told} before {before}."
    return shrinks(base, not_before(since.strftime("%Y-%m")), years=years)(make)


forward_2023_last_1_year = last_years(forward_2023, 1, before="2023-01")
forward_2023_last_2_years = last_years(forward_2023, 2, before="2023-01")
forward_2023_last_3_years = last_years(forward_2023, 3, before="2023-01")
forward_2023_last_4_years = last_years(forward_2023, 4, before="2023-01")

forward_2024_last_1_year = last_years(forward_2024, 1, before="2024-01")
forward_2024_last_2_years = last_years(forward_2024, 2, before="2024-01")
forward_2024_last_3_years = last_years(forward_2024, 3, before="2024-01")
forward_2024_last_4_years = last_years(forward_2024, 4, before="2024-01")
