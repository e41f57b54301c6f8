"""Leakage checks of columns, dates and splits, and of the run folders: test rows, backtest rows and rolling dates."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast import splits
from perfcast.evaluation.leakage.artifacts import (
    TRAINING_SUBSETS,
    Artifacts,
    CheckReport,
    LeakageCheck,
    Run,
    join_names,
    training_mask,
)
from perfcast.schema.table import BRIDGE, Column, Kind, Role, Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.uncertainty.rolling import fit_forecast_levels, roll_predictions
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


FORWARD = ("forward", "rolling")
"""Prefixes of the names of splits by date."""
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


def check_test_rows(artifacts: Artifacts) -> CheckReport:
    """Compare every prediction with the split file and the features table."""
    scores = artifacts.table.frame.set_index(artifacts.table.column_of(Tag.ROW))[
        artifacts.table.select(role=Role.TARGET)
    ]
    count = 0
    findings: list[str] = []
    for run in artifacts.runs:
        frame = run.predictions()
        count += len(frame)
        findings += [f"{run.name}: {problem}" for problem in _problems(artifacts, run, frame, scores)]
    return CheckReport(f"{count:,} predictions of {len(artifacts.runs)} runs", tuple(findings))


def _problems(artifacts: Artifacts, run: Run, frame: pd.DataFrame, scores: pd.DataFrame) -> list[str]:
    findings = []
    is_test = find_subsets(artifacts, run.split, frame) == "test"
    if not is_test.all():
        findings.append(f"{int((~is_test).sum())} predictions of rows that are not test rows of the fold")
    if repeated := int(frame.duplicated(["seed", "target", "row"]).sum()):
        findings.append(f"{repeated} rows are predicted twice")
    truth, is_known = _look_up(scores, frame, "target")
    truth = np.where(is_known, truth.astype(float), np.nan)
    measured = frame["measured"].to_numpy(dtype=float)
    if wrong := int((~np.isclose(measured, truth, rtol=1e-9, atol=0)).sum()):
        findings.append(f"{wrong} measured scores are not those of the features table")
    return findings


def find_subsets(artifacts: Artifacts, split: str, frame: pd.DataFrame) -> np.ndarray:
    """Return the subset of each row in its fold, "" where it has none. Shapes: (n,) text."""
    subsets, is_known = _look_up(artifacts.subsets(split).astype(str), frame, "fold")
    return np.where(is_known, subsets.astype("U10"), "")


def _look_up(table: pd.DataFrame, frame: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells of a table by the rows of a frame and one of its columns, and whether the table has them."""
    lines = table.index.get_indexer(pd.Index(frame["row"]))
    columns = table.columns.get_indexer(pd.Index(frame[column]))
    return table.to_numpy()[lines, columns], (lines >= 0) & (columns >= 0)


def check_backtest_rows(artifacts: Artifacts) -> CheckReport:
    """Compare every backtest prediction with the split file."""
    count = 0
    findings = []
    for run in artifacts.runs:
        frame = run.backtests()
        if frame.empty:
            continue
        count += len(frame)
        subset = find_subsets(artifacts, run.split, frame)
        tested = int((subset == "test").sum())
        outside = int(np.logical_and.reduce([subset != name for name in TRAINING_SUBSETS]).sum())
        if tested:
            findings.append(f"{run.name}: {tested} backtest rows are test rows of the same fold")
        if outside > tested:
            findings.append(f"{run.name}: {outside - tested} backtest rows are not in the fold's training part")
        if repeated := int(frame.duplicated(["fold", "seed", "backtest", "target", "row"]).sum()):
            findings.append(f"{run.name}: {repeated} rows are in one backtest twice")
    return CheckReport(f"{count:,} backtest predictions of {len(artifacts.runs)} runs", tuple(findings))


def check_rolling_dates(artifacts: Artifacts) -> CheckReport:
    """Roll predictions of rolling runs again with other scores from a month on, and compare those up to that month.

    The month is the median of the test rows; scores from it on are doubled.
    """
    runs = [run for run in artifacts.runs if splits.frozen_split(run.split)]
    if not runs:
        return CheckReport("no rolling split")
    key = artifacts.table.column_of(Tag.ROW)
    months = artifacts.table.frame.set_index(key)[artifacts.table.column_of(Tag.TIME)]
    findings = []
    for run in runs:
        trained = run.folder.parents[1] / splits.frozen_split(run.split) / run.predictor
        frozen, backtests = (read_parquet(trained / f"{name}.parquet") for name in ("predictions", "backtest"))
        when = months.loc[frozen["row"]]
        middle = when.sort_values().iloc[len(when) // 2]
        is_known = (when <= middle).to_numpy()
        changed = frozen.assign(measured=frozen["measured"].where((when < middle).to_numpy(), 2 * frozen["measured"]))
        levels = fit_forecast_levels(backtests, artifacts.table)
        again = roll_predictions(levels, changed[is_known], artifacts.table, "seed")
        both = again.merge(run.predictions(), on=["seed", "target", "row"], suffixes=("", "_stored"))
        wrong = int((~np.isclose(both["predicted"], both["predicted_stored"], rtol=1e-6)).sum())
        if wrong or len(both) < is_known.sum():
            findings.append(f"{run.name}: {wrong} predictions up to {middle:%Y-%m} change with scores from then on")
    return CheckReport(f"{len(runs)} runs", tuple(findings))


def check_bridge(artifacts: Artifacts) -> CheckReport:
    """Count the results of its own entity that the estimator of each row was fitted on, and compare the tasks."""
    bridge = artifacts.table.facts.get(BRIDGE)
    table = artifacts.table
    if bridge is None:
        return CheckReport("no estimates by another dataset's champion")
    known = table.frame[bridge["known"]] > 0
    shared = sorted({*bridge["tasks"]} & {*table.frame[table.column_of(Tag.TASK)].dropna()})
    findings = [f"the estimator was fitted on results of {join_names(shared)}"] if shared else []
    if bridge["without"] and known.any():
        findings.append(f"{known.sum()} rows are estimated by a predictor fitted on their {bridge['without']}")
    return CheckReport(f"{len(known)} rows", tuple(findings), {"rows_of_known_entities": int(known.sum())})


_TEXTS = {
    check_bridge: (
        "estimates by another dataset's champion may rest on no result of this one, nor of what its bridge leaves out",
        "make the estimates again (delete DATASET.bridge in features/ and run snakemake)",
    ),
    check_column_roles: (
        "a column declared target or provenance may not be a feature of the table or of a model",
        "declare its role again, or take it out of the features and train again",
    ),
    check_split_rules: (
        "training may not contain a test row's configuration, block, entity or date where its split forbids it",
        "make the split again (delete its file and run snakemake); if it still leaks, the split is wrong",
    ),
    check_future_dates: (
        "a forward split may train only on rows dated before its first test row",
        "correct the dates or the split, and make the split again",
    ),
    check_rolling_dates: (
        "a rolling prediction may know only the scores of months before its own",
        "delete the run's folder and run snakemake; if it still leaks, `ErrorLevels.roll` is wrong",
    ),
    check_test_rows: (
        "a run may predict only test rows of its fold, each once, with their measured scores",
        "train the run again",
    ),
    check_backtest_rows: (
        "a fold may backtest only on rows of its training part, each once, never on test rows",
        "train the run again",
    ),
}
"""Check -> its requirement and remedy."""
CHECKS = tuple(
    LeakageCheck(check.__name__.removeprefix("check_").replace("_", " "), *texts, check)
    for check, texts in _TEXTS.items()
)
