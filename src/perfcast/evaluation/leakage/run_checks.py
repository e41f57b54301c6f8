"""Leakage checks of the run folders: test rows, backtest rows and repeated runs."""

from __future__ import annotations

import hashlib
import importlib
from itertools import combinations

import numpy as np
import pandas as pd

from perfcast.evaluation.leakage.artifacts import (
    TRAINING_SUBSETS,
    Artifacts,
    CheckReport,
    LeakageCheck,
    Run,
    find_positions,
)
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Role, Tag
from perfcast.utils.io import read_object


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
    lines, columns = find_positions(scores.index, frame["row"]), find_positions(scores.columns, frame["target"])
    truth = np.where((lines >= 0) & (columns >= 0), scores.to_numpy(dtype=float)[lines, columns], np.nan)
    measured = frame["measured"].to_numpy(dtype=float)
    if wrong := int((~np.isclose(measured, truth, rtol=1e-9, atol=0)).sum()):
        findings.append(f"{wrong} measured scores are not those of the features table")
    return findings


def find_subsets(artifacts: Artifacts, split: str, frame: pd.DataFrame) -> np.ndarray:
    """Return the subset of each row in its fold, "" where it has none. Shapes: (n,) text."""
    subsets = artifacts.subsets(split)
    lines, columns = find_positions(subsets.index, frame["row"]), find_positions(subsets.columns, frame["fold"])
    values = subsets.to_numpy(dtype="U10")[lines, columns]
    return np.where((lines >= 0) & (columns >= 0), values, "")


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
        tested, outside = (
            int((subset == "test").sum()),
            int(np.logical_and.reduce([subset != name for name in TRAINING_SUBSETS]).sum()),
        )
        if tested:
            findings.append(f"{run.name}: {tested} backtest rows are test rows of the same fold")
        if outside > tested:
            findings.append(f"{run.name}: {outside - tested} backtest rows are not in the fold's training part")
        if repeated := int(frame.duplicated(["fold", "seed", "backtest", "target", "row"]).sum()):
            findings.append(f"{run.name}: {repeated} rows are in one backtest twice")
    return CheckReport(f"{count:,} backtest predictions of {len(artifacts.runs)} runs", tuple(findings))


MIN_ROWS = 20
MIN_VALUES = 10
"""Rows, and different predictions among them, below which two predictors may agree by chance."""


def check_repeated_runs(artifacts: Artifacts) -> CheckReport:
    """Compare the bytes of all predictions of a split, and every run's config.yaml with its folder.

    Two predictors with a common base class besides `Predictor` may agree where the weight of their difference is zero;
    their backtests differ. Equal seeds are a finding only where they agree on every split.
    """
    findings = [problem for run in artifacts.runs for problem in _misnamed(artifacts.table.dataset, run)]
    alike: dict[str, dict[tuple[int, int], list[bool]]] = {}
    count = 0
    for split in artifacts.splits:
        runs = [run for run in artifacts.runs if run.split == split]
        digests = {run.predictor: _digests(run.predictions()) for run in runs}
        count += sum(map(len, digests.values()))
        for left, right in combinations(runs, 2):
            same = set(digests[left.predictor].values()) & set(digests[right.predictor].values())
            if same and not _are_related(left, right):
                findings.append(f"{left.predictor} and {right.predictor} have equal predictions on {split}")
        for run in runs:
            if run.predictor in artifacts.stochastic:
                for pair in combinations(sorted(digests[run.predictor]), 2):
                    equal = digests[run.predictor][pair[0]] == digests[run.predictor][pair[1]]
                    alike.setdefault(run.predictor, {}).setdefault(pair, []).append(equal)
    for predictor, pairs in alike.items():
        for seeds, agree in pairs.items():
            if all(agree):
                findings.append(f"{predictor} has equal predictions under the seeds {seeds[0]} and {seeds[1]}")
    return CheckReport(f"{count} sets of predictions of {len(artifacts.runs)} runs", tuple(findings))


def _misnamed(dataset: str, run: Run) -> list[str]:
    """Return a finding when config.yaml names another run than its folder."""
    config = run.config()
    if not config:
        return []
    configured = (config["dataset"]["name"], config["split"], config["predictor"]["name"])
    expected = (dataset, run.split, run.predictor)
    return (
        [] if configured == expected else [f"config.yaml of the run {'/'.join(expected)} names {'/'.join(configured)}"]
    )


def _digests(frame: pd.DataFrame) -> dict[int, str]:
    """Return the digest of the predictions by seed; a seed with too few of them is left out."""
    digests = {}
    for seed in sorted(set(frame["seed"].tolist())):
        part = frame[frame["seed"] == seed]
        ordered = part.sort_values(["fold", "target", "row"], kind="stable")
        if ordered["row"].nunique() >= MIN_ROWS and ordered["predicted"].nunique() >= MIN_VALUES:
            values = ordered["predicted"].to_numpy(dtype=float).tobytes()
            digests[int(seed)] = hashlib.sha256(values).hexdigest()
    return digests


def _are_related(left: Run, right: Run) -> bool:
    """Return whether two runs have a common base class and different backtests."""
    first, second = _bases(left), _bases(right)
    shared = {base for base in first & second if issubclass(base, Predictor) and base is not Predictor}
    if not shared:
        return False
    empty = pd.Series(dtype=float)
    before, after = (run.backtests().get("predicted", empty).to_numpy(dtype=float) for run in (left, right))
    return before.tobytes() != after.tobytes()


def _bases(run: Run) -> set[type]:
    """Return the classes of the stored predictor of a run, empty without a stored model."""
    path = run.folder / "model" / "predictor.json"
    if not path.is_file():
        return set()
    module, _, name = str(read_object(path, "class")["class"]).partition(":")
    if not module.startswith("perfcast.predictors."):
        return set()
    return set(getattr(importlib.import_module(module), name).__mro__)


TEST_ROWS = LeakageCheck(
    "test rows",
    "a run may predict only test rows of its fold, each once, with their measured scores",
    "train the run again",
    check_test_rows,
)
BACKTEST_ROWS = LeakageCheck(
    "backtest rows",
    "a fold may backtest only on rows of its training part, each once, never on test rows",
    "train the run again",
    check_backtest_rows,
)
REPEATED_RUNS = LeakageCheck(
    "repeated runs",
    "runs of different predictors, and of different seeds of a predictor with randomness, must differ",
    "delete the run's folder and train it again",
    check_repeated_runs,
)
