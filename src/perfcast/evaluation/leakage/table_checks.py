"""Leakage checks of columns, announcement dates and splits."""

from __future__ import annotations

import numpy as np

from perfcast import splits
from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, LeakageCheck, join_names, training_mask
from perfcast.schema.table import Column, Kind, Role, Table, Tag
from perfcast.utils.io import read_object


def check_column_roles(artifacts: Artifacts) -> CheckReport:
    """Compare the column declarations of the standard table, the features table and every stored model."""
    before = {column.name: column for column in artifacts.standard}
    roles = {column.name: column.role for column in artifacts.table.columns}
    changed = [
        column.name
        for column in artifacts.table.columns
        if column.role is Role.FEATURE and before.get(column.name, column).role is not Role.FEATURE
    ]
    findings = [
        f"{name} is {before[name].role} in the standard table and a feature in the features table" for name in changed
    ]
    models = 0
    for run in artifacts.runs:
        # components of a combined model included
        for path in sorted((run.folder / "model").rglob("predictor.json")):
            model = read_object(path)
            models += 1
            features_read = [entry["name"] for entry in model["columns"] if entry["role"] == Role.FEATURE]
            wrong = sorted({name for name in features_read if roles.get(name) not in (Role.FEATURE, None)})
            unknown = sorted(set(features_read) - set(roles))
            if wrong:
                findings.append(f"{run.name} reads {join_names(wrong)}, which the table declares {roles[wrong[0]]}")
            if unknown:
                findings.append(f"{run.name} reads {join_names(unknown)}, which the table does not have")
    features = sum(role is Role.FEATURE for role in roles.values())
    return CheckReport(f"{features} features, {models} stored models", tuple(dict.fromkeys(findings)))


COLUMN_ROLES = LeakageCheck(
    "column roles",
    "a column declared target or provenance may not be a feature of the table or of a model",
    "declare its role again, or take it out of the features and train again",
    check_column_roles,
)


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
                    findings.append(f"{split} {fold}: {late} training rows have {name} in or after {start:%Y-%m}")
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
