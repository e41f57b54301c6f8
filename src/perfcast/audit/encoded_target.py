"""Does any feature, alone or with a second one, tell the score itself?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.audit.base import Evidence, Looked
from perfcast.schema import Column, Kind, Role, Table, Tag

MEANING = "no feature, nor any two of them, may tell the score of machines that nobody has measured"
REMEDY = "find where the column comes from; what is known only with the result is declared provenance"
IN_ONE_TASK = 0.02
IN_ALL_TASKS = 0.04
"""Shares of a constant answer's error that are implausibly little for one or two columns on unseen machines: in a task,
and as the median over three tasks or more.

Counted on published results (SPEC CPU2006, SPEC CPU2017 by suite and by benchmark, matrix products): the best single
feature of a suite leaves a fifth of the constant's error and the best two a tenth; a benchmark of one thread that fits
the cache follows the turbo clock to 5 %, its neighbours do not. A peak score leaves 2 to 4 % of the base score's in
every suite, and the seconds that a score was computed from leave nothing."""
HELD_OUT = 0.2
LEAST_ROWS = 50
LEAST_ENTITIES = 10
LEAST_SPREAD = 0.05
"""Held-out rows, entities, and median error of a constant (logarithm) below which nothing can be said."""
MOST_ROWS = 1500
"""Rows of one task and target that are looked at; more would find nothing else."""


@dataclass(frozen=True)
class _Question:
    """One task and target: logs of the scores, which rows are held out, whose machine each row is, its features."""

    name: str
    logs: np.ndarray
    asked: np.ndarray
    entities: np.ndarray
    values: pd.DataFrame


def look(evidence: Evidence) -> Looked:
    """Forecast the scores of held-out entities from single features and from pairs of them.

    A fifth of the entities is held out, whatever the splits: on machines that training knows, a column that merely
    names the machine does as well as one that tells its score. A single numerical or date feature answers by
    interpolation between the medians of its known values, which follows any relation, monotone or not; a categorical
    one by the median of its group. Pairs of numerical features answer by least squares in logarithms, which finds a
    score that is a product of powers of them. Not found: a score hidden among three columns or more, or in few rows.
    """
    rng = np.random.default_rng(evidence.seed)
    features = [column for column in evidence.table.columns if column.role is Role.FEATURE]
    tasks = set(evidence.table.select(tag=Tag.TASK))
    features = [column for column in features if column.name not in tasks and column.kind is not Kind.TEXT]
    shares: dict[str, dict[str, float]] = {}
    count = 0
    for question in _questions(evidence.table, features, rng):
        count += 1
        told = dict(_singles(question, features))
        told |= dict(_pairs(question, [name for name in told if told[name] >= IN_ALL_TASKS]))
        for name, share in told.items():
            shares.setdefault(name, {})[question.name] = share
    found = [finding for name, by_task in shares.items() if (finding := _finding(name, by_task))]
    least = min(
        ((share, f"{name} in {task}") for name, by in shares.items() for task, share in by.items()), default=None
    )
    if not count:
        return Looked("too few rows to hold machines out")
    numbers: dict[str, float | str | None] = {}
    if least:
        numbers = {"least_share_of_error_left": least[0], "by": least[1]}
    held = f"{100 * HELD_OUT:.0f} % of entities held out"
    at = f"{len(features)} features and their pairs in {count} tasks and targets, {held}"
    return Looked(at, tuple(found), numbers)


def _finding(name: str, shares: dict[str, float]) -> str | None:
    """Return the sentence on a feature that leaves too little, None on one that does not."""
    least = min(shares, key=lambda task: shares[task])
    if shares[least] < IN_ONE_TASK:
        return f"{name} leaves {100 * shares[least]:.1f} % of a constant's error in {least}"
    middle = float(np.median(list(shares.values())))
    if len(shares) >= 3 and middle < IN_ALL_TASKS:
        return f"{name} leaves {100 * middle:.1f} % of a constant's error in the middle one of {len(shares)} tasks"
    return None


def _questions(table: Table, features: list[Column], rng: np.random.Generator) -> Iterator[_Question]:
    frame = table.frame
    tasks = table.select(tag=Tag.TASK)
    labels = frame[tasks[0]].astype(str) if tasks else pd.Series("all rows", index=frame.index)
    names = table.select(tag=Tag.ENTITY) or [table.column_of(Tag.ROW)]
    entities = frame.groupby(names, sort=True, dropna=False).ngroup().to_numpy()
    held = rng.permutation(entities.max() + 1) < HELD_OUT * (entities.max() + 1)
    targets = table.select(role=Role.TARGET)
    for target in targets:
        for task in sorted(labels.unique()):
            rows = np.flatnonzero((frame[target].notna() & (frame[target] > 0) & (labels == task)).to_numpy())
            if len(rows) > MOST_ROWS:
                rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
            own = entities[rows]
            asked = held[own]
            if _enough(asked, own):
                name = task if len(targets) == 1 else f"{task}, {target}"
                logs = np.log(frame[target].to_numpy(dtype=float)[rows])
                columns = {column.name: _plain(frame[column.name].iloc[rows], column) for column in features}
                yield _Question(name, logs, asked, own, pd.DataFrame(columns).reset_index(drop=True))


def _enough(asked: np.ndarray, entities: np.ndarray) -> bool:
    return bool(
        asked.sum() >= LEAST_ROWS
        and (~asked).sum() >= LEAST_ROWS
        and len(np.unique(entities[asked])) >= LEAST_ENTITIES
        and len(np.unique(entities[~asked])) >= LEAST_ENTITIES
    )


def _plain(values: pd.Series, column: Column) -> pd.Series:
    """Return numbers for numerical and date columns, and for categories that are numbers; text for the others."""
    if column.kind is Kind.NUMERICAL:
        return values.astype(float).reset_index(drop=True)
    if column.kind is Kind.DATE:
        days = (values - pd.Timestamp("2000-01-01")).dt.days
        return days.astype(float).reset_index(drop=True)
    numbers = pd.to_numeric(values, errors="coerce")
    if (numbers.notna() == values.notna()).all() and values.notna().any():
        return numbers.astype(float).reset_index(drop=True)
    return values.astype(object).reset_index(drop=True)


def _singles(question: _Question, features: list[Column]) -> Iterator[tuple[str, float]]:
    """Give the share of a constant's error that every feature leaves, where enough rows know it."""
    for column in features:
        values = question.values[column.name]
        known = values.notna().to_numpy()
        if values[known].nunique() < 2 or not _enough(question.asked[known], question.entities[known]):
            continue
        fitting, asking = known & ~question.asked, known & question.asked
        medians = pd.Series(question.logs[fitting]).groupby(values[fitting].to_numpy()).median()
        middle = float(np.median(question.logs[fitting]))
        if values.dtype == float:
            answers = np.interp(values[asking], medians.index.to_numpy(dtype=float), medians.to_numpy())
        else:
            answers = values[asking].map(medians).fillna(middle).to_numpy(dtype=float)
        share = _share(answers, question.logs[asking], middle)
        if share is not None:
            yield column.name, share


def _pairs(question: _Question, names: list[str]) -> Iterator[tuple[str, float]]:
    """Give the best pair of the named numerical features, by what it leaves on the rows held out.

    All pairs are fitted at once, by the correlations of their columns; the best one is then fitted without the held-out
    rows.
    """
    columns = {name: _logs(question.values[name]) for name in names if question.values[name].dtype == float}
    columns = {name: values for name, values in columns.items() if values is not None}
    if len(columns) < 2:
        return
    known = np.array(list(columns.values()))
    centred = known - known.mean(axis=1, keepdims=True)
    centred /= centred.std(axis=1, keepdims=True)
    logs = question.logs - question.logs.mean()
    each, between = centred @ logs / len(logs) / logs.std(), centred @ centred.T / len(logs)
    independent = np.where(between**2 < 1 - 1e-6, 1 - between**2, np.inf)
    explained = (each[:, None] ** 2 + each**2 - 2 * np.outer(each, each) * between) / independent
    first, second = np.unravel_index(int(np.argmax(np.triu(explained, 1))), explained.shape)
    terms = np.column_stack([np.ones(len(logs)), known[first], known[second]])
    weights, *_ = np.linalg.lstsq(terms[~question.asked], question.logs[~question.asked], rcond=None)
    middle = float(np.median(question.logs[~question.asked]))
    share = _share(terms[question.asked] @ weights, question.logs[question.asked], middle)
    if share is not None:
        kept = list(columns)
        yield f"{kept[first]} with {kept[second]}", share


def _logs(values: pd.Series) -> np.ndarray | None:
    """Return a column in logarithms where it is positive, the mean where it is missing; None for a constant one."""
    known = values.notna().to_numpy()
    if known.mean() < 0.5:
        return None
    numbers = values.to_numpy(dtype=float)
    if (numbers[known] > 0).all():
        numbers = np.log(numbers)
    filled = np.where(known, numbers, numbers[known].mean())
    return filled if filled.std() > 1e-9 * max(1.0, abs(filled.mean())) else None


def _share(answers: np.ndarray, logs: np.ndarray, middle: float) -> float | None:
    """Return the median absolute error of answers over that of a constant; None where a constant does well."""
    constant = float(np.median(np.abs(logs - middle)))
    return float(np.median(np.abs(answers - logs))) / constant if constant >= LEAST_SPREAD else None
