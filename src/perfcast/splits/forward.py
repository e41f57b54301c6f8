"""Forward splits: training is before a month, test from it on."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_window
from perfcast.splits.declaration import declare_split
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import as_frame, assigned, by_key
from perfcast.utils.errors import UserError

VALID_MONTHS = 12
LAST_SHARE = 0.20


def _last_share(table: Table, fold: pd.Series) -> list[str]:
    """Check the fold against the latest month from which on there are `LAST_SHARE` of the rows, counted anew."""
    time = table.frame[table.column_of(Tag.TIME)]
    months = time.dropna().dt.to_period("M")
    since = months.value_counts().sort_index(ascending=False).cumsum()
    start = str(since[since >= LAST_SHARE * len(months)].index.max())
    return check_window(start, "2200-01")(table, fold)


@declare_split(
    "releases from 2010",
    "machines published from 2010 on, trained on earlier results",
    check_window("2010-01", "2012-01"),
)
def forward_2010(table: Table, seed: int) -> pd.DataFrame:
    """Test on the next generations: train before 2010-01, test from then to 2011-12."""
    del seed
    return _forward(table, "2010-01", "2012-01")


@declare_split(
    "releases from 2012",
    "machines published from 2012 on, trained on earlier results",
    check_window("2012-01", "2015-01"),
)
def forward_2012(table: Table, seed: int) -> pd.DataFrame:
    """Test on the next generations: train before 2012-01, test from then to 2014-12."""
    del seed
    return _forward(table, "2012-01", "2015-01")


@declare_split(
    "releases from 2021",
    "machines published from 2021 on, trained on earlier results",
    check_window("2021-01", "2024-01"),
)
def forward_2021(table: Table, seed: int) -> pd.DataFrame:
    """Test on the next generation where data end in 2023: train before 2021-01, test from then to 2023-12."""
    del seed
    return _forward(table, "2021-01", "2024-01")


@declare_split(
    "releases from 2023",
    "machines published from 2023 on, trained on earlier results",
    check_window("2023-01", "2025-01"),
)
def forward_2023(table: Table, seed: int) -> pd.DataFrame:
    """Test on the next generation: train before 2023-01, test from then to 2024-12."""
    del seed
    return _forward(table, "2023-01", "2025-01")


@declare_split(
    "releases from 2024",
    "machines published from 2024 on, trained on earlier results",
    check_window("2024-01", "2025-01"),
)
def forward_2024(table: Table, seed: int) -> pd.DataFrame:
    """Test on the next year: train before 2024-01, test on 2024."""
    del seed
    return _forward(table, "2024-01", "2025-01")


@declare_split("latest releases", "the latest fifth of the results, trained on all earlier ones", _last_share)
def forward_last(table: Table, seed: int) -> pd.DataFrame:
    """Test on the last fifth: test from the latest month on that has 20 % of the rows at or after it, train before.

    Raises: UserError when no row has a date.
    """
    del seed
    ordered = by_key(table)
    time = ordered.frame[ordered.column_of(Tag.TIME)].dropna().sort_values(ignore_index=True)
    if time.empty:
        raise UserError("the split 'forward_last' needs dates", f"{table.dataset!r} has none", "choose another split")
    start = time.iloc[len(time) - int(np.ceil(LAST_SHARE * len(time)))].to_period("M")
    return _forward(table, str(start), str(time.iloc[-1].to_period("M") + 1))


def _forward(table: Table, start: str, end: str) -> pd.DataFrame:
    """Train before `start`, test until before `end`; validation rows are the last twelve months with training rows.

    A training row of a block that also has test rows is unused. A test row whose exact features were measured before
    `start` stays in test: such results are known at that time.
    """
    ordered = by_key(table)
    time = ordered.frame[ordered.column_of(Tag.TIME)]
    train = (time < pd.Timestamp(start)).to_numpy()
    test = ((time >= pd.Timestamp(start)) & (time < pd.Timestamp(end))).to_numpy()
    blocks = by_tag(ordered, Tag.BLOCK)
    train = train & ~np.isin(blocks, blocks[test])
    validation = train & (time > time[train].max() - pd.DateOffset(months=VALID_MONTHS)).to_numpy()
    return as_frame(table, ordered, [assigned(test, validation, ~(train | test))])
