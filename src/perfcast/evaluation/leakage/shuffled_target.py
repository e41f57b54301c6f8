"""Leakage check by a negative control: training on permuted targets must not beat chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, LeakageCheck
from perfcast.experiment.fitting import fit_rows, measured_rows, predict_rows, tested_rows, training_rows
from perfcast.schema.table import Role, Table, Tag

MAX_ROWS = 3000
"""Training rows of larger tasks, and test rows, that the control uses."""
MIN_ROWS = 200
"""Training and test rows below which the control does not apply: so few may resemble the truth by chance."""
SMALL_TASK = 20
_KEYS = ["task", "target"]


def check_shuffled_target(artifacts: Artifacts) -> CheckReport:
    """Train the control on scores permuted within task and target, and compare it with chance on the same test rows.

    Chance is the median of the training scores of the task. Predictions of the control are scaled, by task, to the same
    median over the training rows, so that only differences between machines can improve them. Errors are absolute
    logarithms, averaged over the rows of a task and then over tasks: the median is the constant with the least, however
    skewed the scores are. The control is trained `shuffles` times. Without a leak a shuffle improves on the median at
    most as often as not, so a finding needs that all of them do: by chance in 1 of 2 ** `shuffles` tables.
    It finds scores of test rows that reach a prediction without training: through keys, wrongly matched rows or a
    store. It does not find a feature that encodes the score, because that relation is shuffled too.
    Source: permutation of labels as a negative control (Ojala and Garriga, 2010, J. Mach. Learn. Res. 11).
    """
    table = artifacts.table
    split = artifacts.first_split()
    control = artifacts.control
    rng = np.random.default_rng(artifacts.seed)
    part = artifacts.folds(split).iloc[:, 0].to_numpy()
    tasks = table.frame[table.column_of(Tag.TASK)].astype(str)
    allowed = training_rows(table, part, None)
    tested = tested_rows(table, part) & measured_rows(table)
    if not allowed.any() or not tested.any() or allowed.sum() + tested.sum() < MIN_ROWS:
        return CheckReport(f"fewer than {MIN_ROWS} rows on {split}: too few to train {control.name}")
    # a task of few rows, such as a new device with ten results, is not subsampled: it could vanish
    small_tasks = allowed & (tasks.map(tasks[allowed].value_counts()) <= SMALL_TASK).to_numpy()
    training = small_tasks | _subsample(allowed & ~small_tasks, rng)
    testing = _subsample(tested, rng)
    errors = np.empty((control.shuffles, 2))
    for number in range(control.shuffles):
        shuffled = _shuffled(table, training, rng)
        predictor = fit_rows(control.make(artifacts.seed + number), shuffled, training, part[training] == "validation")
        fitted, test = (predict_rows(predictor, shuffled, rows, 0, 0) for rows in (training, testing))
        medians = fitted.groupby(_KEYS, sort=True)[["measured", "predicted"]].median()
        by_row = medians.reindex(pd.MultiIndex.from_frame(test[_KEYS])).set_axis(test.index)
        if by_row["measured"].isna().all():
            return CheckReport(f"no task of the test rows of {split} has training rows")
        scaled = test["predicted"] * by_row["measured"] / by_row["predicted"]
        ratios = pd.DataFrame({"control": scaled, "chance": by_row["measured"]}).div(test["measured"], axis=0)
        errors[number] = ratios.apply(np.log).abs().groupby(test["task"]).mean().mean()
    (mean, chance), better = errors.mean(axis=0), int((errors[:, 0] < errors[:, 1]).sum())
    numbers = {"control_error": mean, "chance_error": chance, "better": better, "shuffles": control.shuffles}
    scope = (
        f"{control.name} on {split}, {control.shuffles} shuffles, {int(training.sum()):,} training rows, "
        f"{int(testing.sum()):,} test rows"
    )
    finding = (
        f"{control.name}, trained on shuffled scores of {split}, is better than the median in all {better} shuffles "
        f"(mean absolute log error {mean:.3f}, of the median {chance:.3f})"
    )
    return CheckReport(scope, (finding,) if better == control.shuffles else (), numbers)


def _subsample(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a mask of at most `MAX_ROWS` of the marked rows, drawn at random."""
    places = np.flatnonzero(rows)
    mask = np.zeros(len(rows), dtype=bool)
    mask[places if len(places) <= MAX_ROWS else rng.choice(places, MAX_ROWS, replace=False)] = True
    return mask


def _shuffled(table: Table, training: np.ndarray, rng: np.random.Generator) -> Table:
    """Return the table with the training rows' scores permuted within task and target; test rows keep theirs."""
    frame = table.frame.copy()
    tasks = frame[table.column_of(Tag.TASK)].astype(str).to_numpy()
    for target in table.select(role=Role.TARGET):
        scores = frame[target].to_numpy(dtype=float, copy=True)
        for task in sorted(set(tasks[training])):
            places = np.flatnonzero(training & (tasks == task) & np.isfinite(scores))
            scores[places] = scores[rng.permutation(places)]
        frame[target] = scores
    return replace(table, frame=frame)


SHUFFLED_TARGET = LeakageCheck(
    "shuffled target",
    "a predictor that is trained on shuffled scores must not beat the training median of the task",
    "scores reach predictions without training: check keys, features and the matching of rows",
    check_shuffled_target,
)
