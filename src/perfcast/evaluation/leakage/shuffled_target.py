"""Leakage check by a negative control: training on permuted targets must not beat chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from perfcast.evaluation.error_metrics import draw_weights, percentile_interval
from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, LeakageCheck
from perfcast.experiment.fitting import fit_rows, predict_rows, tested_rows, training_rows
from perfcast.schema.table import Role, Table, Tag

MAX_ROWS = 3000
"""Training rows of larger tasks, and test rows, that the control uses."""
MIN_ROWS = 20
_KEYS = ["task", "target"]


def check_shuffled_target(artifacts: Artifacts) -> CheckReport:
    """Train the control on scores permuted within task and target, and compare it with chance on the same test rows.

    Chance is the median of the training scores of the task. Predictions of the control are scaled, by task, to the same
    median over the training rows, so that only differences between machines can improve them. The control is trained
    `shuffles` times, because one shuffle may resemble the truth by chance. The 95 % interval of the difference of MAPE
    is a bootstrap over shuffles and over the entities of test rows. An interval below zero is a finding.
    It finds scores of test rows that reach a prediction without training: through keys, wrongly matched rows or a
    store. It does not find a feature that encodes the score, because that relation is shuffled too.
    Source: permutation of labels as a negative control (Ojala and Garriga, 2010, J. Mach. Learn. Res. 11).
    """
    table, split, control = artifacts.table, artifacts.first_split(), artifacts.control
    rng = np.random.default_rng(artifacts.seed)
    part = artifacts.folds(split).iloc[:, 0].to_numpy()
    tasks = table.frame[table.column_of(Tag.TASK)].astype(str)
    allowed = training_rows(table, part, None)
    # a task of few rows, such as a new device with ten results, is not subsampled: it could vanish
    small_tasks = allowed & (tasks.map(tasks[allowed].value_counts()) <= MIN_ROWS).to_numpy()
    training = small_tasks | _subsample(allowed & ~small_tasks, rng)
    testing = _subsample(
        tested_rows(table, part) & table.frame[table.select(role=Role.TARGET)].notna().any(axis=1), rng
    )
    control_text = f"{control.name} on {split}, {control.shuffles} shuffles"
    if training.sum() < MIN_ROWS or testing.sum() < MIN_ROWS:
        return CheckReport(f"too few rows on {split} to train {control.name}")
    errors = []
    for number in range(control.shuffles):
        shuffled = _shuffled(table, training, rng)
        predictor = fit_rows(control.make(artifacts.seed + number), shuffled, training, part[training] == "validation")
        fitted, tested = (predict_rows(predictor, shuffled, rows, 0, 0) for rows in (training, testing))
        medians = fitted.groupby(_KEYS, sort=True)[["measured", "predicted"]].median()
        by_row = medians.reindex(pd.MultiIndex.from_frame(tested[_KEYS]))
        known = by_row["measured"].notna().to_numpy()
        scaled = tested["predicted"].to_numpy() * (by_row["measured"] / by_row["predicted"]).to_numpy()
        frame = tested.assign(
            control=100 * np.abs(scaled / tested["measured"] - 1),
            chance=100 * np.abs(by_row["measured"].to_numpy() / tested["measured"] - 1),
        )
        errors.append(frame[known])
    if errors[0].empty:
        return CheckReport(f"no task of the test rows of {split} has training rows")
    mape, chance, low, high = _difference(errors, artifacts)
    numbers = {
        "control_mape": mape,
        "chance_mape": chance,
        "difference_low": _known(low),
        "difference_high": _known(high),
    }
    scope = f"{control_text}, {int(training.sum()):,} training rows, {int(testing.sum()):,} test rows"
    finding = (
        f"{control.name}, trained on shuffled scores of {split}, has a MAPE of {mape:.2f} %, the median {chance:.2f} % "
        f"(difference {low:+.2f} to {high:+.2f})"
    )
    return CheckReport(scope, (finding,) if high < 0 else (), numbers)


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


def _difference(errors: list[pd.DataFrame], artifacts: Artifacts) -> tuple[float, float, float, float]:
    """Return MAPE of control and of chance, averaged over tasks, and the interval of their difference.

    Every shuffle has the same test rows, so the errors of a task are sums per (shuffle, entity).
    """
    first = errors[0]
    entities, labels = pd.factorize(first["entity"], sort=True)
    weights = draw_weights(len(labels), artifacts.resamples, artifacts.seed)
    chosen = draw_weights(len(errors), artifacts.resamples, artifacts.seed + 1)
    control, chance, draws = [], [], []
    for _, places in sorted(first.groupby("task").indices.items()):
        codes = entities[places]

        def sums(values: np.ndarray, codes: np.ndarray = codes) -> np.ndarray:
            return np.asarray(weights @ np.bincount(codes, weights=values, minlength=len(labels)), dtype=float)

        each = np.array([sums(frame["control"].to_numpy()[places]) for frame in errors])
        rows, base = sums(np.ones(len(places))), sums(first["chance"].to_numpy()[places])
        with np.errstate(invalid="ignore", divide="ignore"):
            draws.append(((chosen.T * each).sum(axis=0) / len(errors) - base) / rows)
        control.append(np.mean([frame["control"].to_numpy()[places].mean() for frame in errors]))
        chance.append(first["chance"].to_numpy()[places].mean())
    low, high = percentile_interval(np.mean(draws, axis=0), len(labels))
    return float(np.mean(control)), float(np.mean(chance)), low, high


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None


SHUFFLED_TARGET = LeakageCheck(
    "shuffled target",
    "a predictor that is trained on shuffled scores must not beat the training median of the task",
    "scores reach predictions without training: check keys, features and the matching of rows",
    check_shuffled_target,
)
