"""The control that must fail: a predictor that learns shuffled scores has nothing to know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from perfcast.audit.base import Evidence, Looked
from perfcast.evaluation.metrics import draw_weights, interval
from perfcast.fitting import as_predictions, fit
from perfcast.parts import judged_rows, training_rows
from perfcast.schema import Role, Table, Tag

MEANING = "a predictor that is trained on shuffled scores must not beat the task's training median"
REMEDY = "scores reach predictions past training: look at keys, features and how rows are matched"
MOST_ROWS = 3000
"""Training rows of larger tasks, and test rows, that the control uses."""
LEAST_ROWS = 20
_KEYS = ["task", "target"]


def look(evidence: Evidence) -> Looked:
    """Train the control on scores permuted within task and target, and hold it against chance on the same test rows.

    Chance answers with the median of the task's training scores. The control's answers are scaled, by task, to the same
    median over the training rows, so that only the differences it makes between machines can help it. It is trained
    `shuffles` times, because one shuffle may resemble the truth by chance; the 95 % interval of the difference of MAPE
    is a bootstrap over shuffles and over the test rows' entities. A finding: all of the interval is below zero.
    What this finds: scores of test rows that reach a prediction by another way than training, as through keys, wrongly
    matched rows or a store. A feature that tells the score is not found by it: its relation is shuffled too.
    Source: permutation of labels as a negative control (Ojala and Garriga, 2010, J. Mach. Learn. Res. 11).
    """
    table, split, control = evidence.table, evidence.asked_first(), evidence.control
    rng = np.random.default_rng(evidence.seed)
    part = evidence.folds(split).iloc[:, 0].to_numpy()
    tasks = table.frame[table.column_of(Tag.TASK)].astype(str)
    allowed = training_rows(table, part, None)
    # a task of few rows, as a new device that is known by ten, is kept whole: drawn from, it could vanish
    few = allowed & (tasks.map(tasks[allowed].value_counts()) <= LEAST_ROWS).to_numpy()
    training = few | _drawn(allowed & ~few, rng)
    testing = _drawn(judged_rows(table, part) & table.frame[table.select(role=Role.TARGET)].notna().any(axis=1), rng)
    told = f"{control.name} on {split}, {control.shuffles} shuffles"
    if training.sum() < LEAST_ROWS or testing.sum() < LEAST_ROWS:
        return Looked(f"too few rows on {split} to train {control.name}")
    errors = []
    for number in range(control.shuffles):
        shuffled = _shuffled(table, training, rng)
        predictor = fit(control.make(evidence.seed + number), shuffled, training, part[training] == "valid")
        learned, asked = (as_predictions(predictor, shuffled, rows, 0, 0) for rows in (training, testing))
        medians = learned.groupby(_KEYS, sort=True)[["measured", "predicted"]].median()
        own = medians.reindex(pd.MultiIndex.from_frame(asked[_KEYS]))
        known = own["measured"].notna().to_numpy()
        scaled = asked["predicted"].to_numpy() * (own["measured"] / own["predicted"]).to_numpy()
        frame = asked.assign(
            control=100 * np.abs(scaled / asked["measured"] - 1),
            chance=100 * np.abs(own["measured"].to_numpy() / asked["measured"] - 1),
        )
        errors.append(frame[known])
    if errors[0].empty:
        return Looked(f"no task that {split} asks about has training rows")
    mape, chance, low, high = _difference(errors, evidence)
    numbers = {
        "control_mape": mape,
        "chance_mape": chance,
        "difference_low": _known(low),
        "difference_high": _known(high),
    }
    at = f"{told}, {int(training.sum()):,} training rows, {int(testing.sum()):,} test rows"
    finding = (
        f"{control.name}, trained on shuffled scores of {split}, is off by {mape:.2f} %, the median by {chance:.2f} % "
        f"(difference {low:+.2f} to {high:+.2f})"
    )
    return Looked(at, (finding,) if high < 0 else (), numbers)


def _drawn(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return at most `MOST_ROWS` of the marked rows, drawn at random, marked."""
    places = np.flatnonzero(rows)
    kept = np.zeros(len(rows), dtype=bool)
    kept[places if len(places) <= MOST_ROWS else rng.choice(places, MOST_ROWS, replace=False)] = True
    return kept


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


def _difference(errors: list[pd.DataFrame], evidence: Evidence) -> tuple[float, float, float, float]:
    """Return MAPE of control and of chance, averaged over tasks, and the interval of their difference.

    Every shuffle has the same test rows, so the errors of a task are sums per (shuffle, entity).
    """
    first = errors[0]
    entities, labels = pd.factorize(first["entity"], sort=True)
    weights = draw_weights(len(labels), evidence.resamples, evidence.seed)
    chosen = draw_weights(len(errors), evidence.resamples, evidence.seed + 1)
    control, chance, draws = [], [], []
    for _, places in sorted(first.groupby("task").indices.items()):
        own = entities[places]

        def sums(values: np.ndarray, own: np.ndarray = own) -> np.ndarray:
            return np.asarray(weights @ np.bincount(own, weights=values, minlength=len(labels)), dtype=float)

        each = np.array([sums(frame["control"].to_numpy()[places]) for frame in errors])
        rows, base = sums(np.ones(len(places))), sums(first["chance"].to_numpy()[places])
        with np.errstate(invalid="ignore", divide="ignore"):
            draws.append(((chosen.T * each).sum(axis=0) / len(errors) - base) / rows)
        control.append(np.mean([frame["control"].to_numpy()[places].mean() for frame in errors]))
        chance.append(first["chance"].to_numpy()[places].mean())
    low, high = interval(np.mean(draws, axis=0), len(labels))
    return float(np.mean(control)), float(np.mean(chance)), low, high


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
