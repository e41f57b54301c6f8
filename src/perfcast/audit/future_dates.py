"""Does a question about the future learn from anything that is dated after the past ended?"""

from __future__ import annotations

import pandas as pd

from perfcast.audit.base import Evidence, Looked, learned
from perfcast.schema import Column, Kind, Role, Table, Tag

MEANING = "a question about the future may learn only from what is dated before its first test row"
REMEDY = "correct the dates or the split, and make the split again"
FORWARD = "forward"
"""How the names of splits by date begin."""
MISTYPED = 0.02
"""Share of training rows whose facts may have a late date: mistakes of whoever typed them."""


def look(evidence: Evidence) -> Looked:
    """Hold the dates of training rows, and of what is known of their machines, against the first test row's.

    A row's own date is its TIME column; dates of facts are the other DATE columns, but for those of the result's own
    history (the group of the TIME column), which are no features: a machine may be published before it is sold.
    A few facts that are late are mistyped dates, not a leak; they are counted.
    """
    forward = [name for name in evidence.splits if name.startswith(FORWARD)]
    times = evidence.table.select(tag=Tag.TIME, kind=Kind.DATE)
    if not forward or not times:
        return Looked("no question about the future")
    dates = [times[0], *[column.name for column in _facts(evidence.table, times[0])]]
    found = []
    typos = 0
    for split in forward:
        folds = evidence.folds(split)
        for fold in map(str, folds):
            known = evidence.table.frame[learned(folds, fold)]
            start = evidence.table.frame.loc[folds[fold].to_numpy() == "test", times[0]].min()
            for name in dates:
                late = int((known[name] >= start).sum())
                if late > (0 if name == times[0] else MISTYPED * len(known)):
                    found.append(f"{split} {fold}: {late} training rows have {name} in or after {_month(start)}")
                else:
                    typos += late
            if missing := int(known[times[0]].isna().sum()):
                found.append(f"{split} {fold}: {missing} training rows have no {times[0]}")
    return Looked(f"{', '.join(dates)} in {', '.join(forward)}", tuple(found), {"late_facts": typos})


def _facts(table: Table, time: str) -> list[Column]:
    own = next(column.group for column in table.columns if column.name == time)
    return [
        column
        for column in table.columns
        if column.kind is Kind.DATE and column.name != time and (column.role is Role.FEATURE or column.group != own)
    ]


def _month(when: pd.Timestamp) -> str:
    return f"{when:%Y-%m}"
