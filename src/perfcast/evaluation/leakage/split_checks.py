"""Leakage checks of the split files: rules of each split, and dates of forward splits."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast import splits
from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, LeakageCheck, training_mask
from perfcast.schema.table import Column, Kind, Role, Table, Tag


def check_split_rules(artifacts: Artifacts) -> CheckReport:
    """Compare every split file with the rules that its split declares.

    Training reads the rows of table and split by position, so their order is checked as well.
    """
    findings = []
    row = artifacts.table.column_of(Tag.ROW)
    for name, frame in artifacts.splits.items():
        keys = artifacts.table.frame[row].to_numpy()
        if len(frame) != len(keys) or not np.array_equal(frame[row].to_numpy(), keys):
            findings.append(f"the rows of the split {name} are not those of the features table, in its order")
            continue
        findings += [f"{name}: {leak}" for leak in splits.leaks(artifacts.table, artifacts.folds(name), name)]
    fold_count = sum(frame.filter(like="fold_").shape[1] for frame in artifacts.splits.values())
    on_purpose = [name for name in artifacts.splits if not splits.is_compared(name)]
    beside = f"; {', '.join(on_purpose)} leaks on purpose" if on_purpose else ""
    scope = f"{len(artifacts.table.frame):,} rows in {fold_count} folds of {len(artifacts.splits)} splits{beside}"
    return CheckReport(scope, tuple(findings))


FORWARD = "forward"
"""Prefix of the names of splits by date."""
MISTYPED = 0.02
"""Share of training rows whose facts may have a late date, because published dates contain typing errors."""


def check_future_dates(artifacts: Artifacts) -> CheckReport:
    """Compare the dates of training rows, and of facts about their machines, with the first test row's.

    The date of a row is its TIME column; dates of facts are the other DATE columns. DATE columns in the group of the
    TIME column that are no features are not compared: a result may be published before its machine is sold.
    A few late facts are typing errors, not a leak; they are counted.
    """
    forward = [name for name in artifacts.splits if name.startswith(FORWARD)]
    times = artifacts.table.select(tag=Tag.TIME, kind=Kind.DATE)
    if not forward or not times:
        return CheckReport("no forward split")
    dates = [times[0], *[column.name for column in _facts(artifacts.table, times[0])]]
    findings = []
    typos = 0
    for split in forward:
        folds = artifacts.folds(split)
        for fold in map(str, folds):
            known = artifacts.table.frame[training_mask(folds, fold)]
            start = artifacts.table.frame.loc[folds[fold].to_numpy() == "test", times[0]].min()
            for name in dates:
                late = int((known[name] >= start).sum())
                if late > (0 if name == times[0] else MISTYPED * len(known)):
                    findings.append(f"{split} {fold}: {late} training rows have {name} in or after {_month(start)}")
                else:
                    typos += late
            if missing := int(known[times[0]].isna().sum()):
                findings.append(f"{split} {fold}: {missing} training rows have no {times[0]}")
    return CheckReport(f"{', '.join(dates)} in {', '.join(forward)}", tuple(findings), {"late_facts": typos})


def _facts(table: Table, time: str) -> list[Column]:
    time_group = next(column.group for column in table.columns if column.name == time)
    return [
        column
        for column in table.columns
        if column.kind is Kind.DATE
        and column.name != time
        and (column.role is Role.FEATURE or column.group != time_group)
    ]


def _month(when: pd.Timestamp) -> str:
    return f"{when:%Y-%m}"


SPLIT_RULES = LeakageCheck(
    "split rules",
    "training may not contain a test row's configuration, block, entity or date where its split forbids it",
    "make the split again (delete its file and run snakemake); if it still leaks, the split is wrong",
    check_split_rules,
)
FUTURE_DATES = LeakageCheck(
    "future dates",
    "a forward split may train only on rows dated before its first test row",
    "correct the dates or the split, and make the split again",
    check_future_dates,
)
