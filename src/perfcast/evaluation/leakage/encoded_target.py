"""Leakage check: no feature, alone or with a second one, encodes the score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.evaluation.leakage.artifacts import Artifacts, CheckReport, LeakageCheck
from perfcast.schema.table import Column, Kind, Role, Table, Tag

IN_ONE_TASK = 0.02
IN_ALL_TASKS = 0.04
"""Shares of the error of a constant prediction that are implausibly small for one or two columns on unseen machines: in
one task, and as the median over three tasks or more.

Measured on SPEC CPU2006, SPEC CPU2017 by suite and by benchmark, and matrix products. The best single feature of a
suite leaves 20 % of the error of a constant, the best two 10 %. A single-threaded benchmark that fits the cache follows
the turbo clock to 5 %. A peak score leaves 2 to 4 % of the base score in every suite; run times leave nothing."""
HELD_OUT = 0.2
MIN_ROWS = 50
MIN_ENTITIES = 10
MIN_SPREAD = 0.05
"""Held-out rows, entities, and median error of a constant (logarithm) below which the check does not apply."""
MAX_ROWS = 1500
"""Rows of one task and target that the check uses."""


@dataclass(frozen=True)
class _Output:
    """One task and target: logarithms of the scores, mask of held-out rows, entity and features of each row."""

    name: str
    logs: np.ndarray
    held_out: np.ndarray
    entities: np.ndarray
    values: pd.DataFrame


def check_encoded_target(artifacts: Artifacts) -> CheckReport:
    """Predict the scores of held-out entities from single features and from pairs of them.

    A fifth of the entities is held out, whatever the splits: on machines seen in training, a column that only names the
    machine predicts as well as one that encodes its score. A single numerical or date feature predicts by interpolation
    between the medians of its known values, which follows any relation; a categorical one by the median of its group.
    Pairs of numerical features predict by least squares in logarithms, which finds products of powers. Scores hidden in
    three columns or more, or in few rows, are not found.
    """
    rng = np.random.default_rng(artifacts.seed)
    features = [column for column in artifacts.table.columns if column.role is Role.FEATURE]
    tasks = set(artifacts.table.select(tag=Tag.TASK))
    whole = (Kind.TEXT, Kind.SEQUENCE)  # their numbers are checked as derived columns
    features = [column for column in features if column.name not in tasks and column.kind not in whole]
    shares: dict[str, dict[str, float]] = {}
    count = 0
    for output in _outputs(artifacts.table, features, rng):
        count += 1
        by_column = dict(_singles(output, features))
        by_column |= dict(_pairs(output, [name for name in by_column if by_column[name] >= IN_ALL_TASKS]))
        for name, share in by_column.items():
            shares.setdefault(name, {})[output.name] = share
    findings = [finding for name, by_task in shares.items() if (finding := _finding(name, by_task))]
    least = min(
        ((share, f"{name} in {task}") for name, by in shares.items() for task, share in by.items()), default=None
    )
    if not count:
        return CheckReport("too few rows to hold out machines")
    numbers: dict[str, float | str | None] = {}
    if least:
        numbers = {"least_share_of_error_left": least[0], "by": least[1]}
    held_out = f"{100 * HELD_OUT:.0f} % of entities held out"
    scope = f"{len(features)} features and their pairs in {count} tasks and targets, {held_out}"
    return CheckReport(scope, tuple(findings), numbers)


def _finding(name: str, shares: dict[str, float]) -> str | None:
    """Return the finding on a feature that leaves too little error, None for one that does not."""
    least = min(shares, key=lambda task: shares[task])
    if shares[least] < IN_ONE_TASK:
        return f"{name} leaves {100 * shares[least]:.1f} % of a constant's error in {least}"
    middle = float(np.median(list(shares.values())))
    if len(shares) >= 3 and middle < IN_ALL_TASKS:
        return f"{name} leaves {100 * middle:.1f} % of a constant's error in the middle one of {len(shares)} tasks"
    return None


def _outputs(table: Table, features: list[Column], rng: np.random.Generator) -> Iterator[_Output]:
    frame = table.frame
    tasks = table.select(tag=Tag.TASK)
    labels = frame[tasks[0]].astype(str) if tasks else pd.Series("all rows", index=frame.index)
    names = table.select(tag=Tag.ENTITY) or [table.column_of(Tag.ROW)]
    entities = frame.groupby(names, sort=True, dropna=False).ngroup().to_numpy()
    is_held_out = rng.permutation(entities.max() + 1) < HELD_OUT * (entities.max() + 1)
    targets = table.select(role=Role.TARGET)
    for target in targets:
        for task in sorted(labels.unique()):
            rows = np.flatnonzero((frame[target].notna() & (frame[target] > 0) & (labels == task)).to_numpy())
            if len(rows) > MAX_ROWS:
                rows = np.sort(rng.choice(rows, MAX_ROWS, replace=False))
            row_entities = entities[rows]
            held_out = is_held_out[row_entities]
            if _has_enough(held_out, row_entities):
                name = task if len(targets) == 1 else f"{task}, {target}"
                logs = np.log(frame[target].to_numpy(dtype=float)[rows])
                columns = {column.name: _as_values(frame[column.name].iloc[rows], column) for column in features}
                yield _Output(name, logs, held_out, row_entities, pd.DataFrame(columns).reset_index(drop=True))


def _has_enough(held_out: np.ndarray, entities: np.ndarray) -> bool:
    parts = (entities[held_out], entities[~held_out])
    return all(len(part) >= MIN_ROWS and len(np.unique(part)) >= MIN_ENTITIES for part in parts)


def _as_values(values: pd.Series, column: Column) -> pd.Series:
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


def _singles(output: _Output, features: list[Column]) -> Iterator[tuple[str, float]]:
    """Yield the share of a constant's error that each feature leaves, where enough rows have it."""
    for column in features:
        values = output.values[column.name]
        known = values.notna().to_numpy()
        if values[known].nunique() < 2 or not _has_enough(output.held_out[known], output.entities[known]):
            continue
        fit_rows, test_rows = known & ~output.held_out, known & output.held_out
        medians = pd.Series(output.logs[fit_rows]).groupby(values[fit_rows].to_numpy()).median()
        middle = float(np.median(output.logs[fit_rows]))
        if values.dtype == float:
            predictions = np.interp(values[test_rows], medians.index.to_numpy(dtype=float), medians.to_numpy())
        else:
            predictions = values[test_rows].map(medians).fillna(middle).to_numpy(dtype=float)
        share = _share(predictions, output.logs[test_rows], middle)
        if share is not None:
            yield column.name, share


def _pairs(output: _Output, names: list[str]) -> Iterator[tuple[str, float]]:
    """Yield the best pair of the named numerical features, with the share it leaves on the held-out rows.

    All pairs are fitted at once, by the correlations of their columns; the best one is then fitted without the held-out
    rows.
    """
    columns = {name: _logs(output.values[name]) for name in names if output.values[name].dtype == float}
    columns = {name: values for name, values in columns.items() if values is not None}
    if len(columns) < 2:
        return
    known = np.array(list(columns.values()))
    centered = known - known.mean(axis=1, keepdims=True)
    centered /= centered.std(axis=1, keepdims=True)
    logs = output.logs - output.logs.mean()
    each, between = centered @ logs / len(logs) / logs.std(), centered @ centered.T / len(logs)
    independent = np.where(between**2 < 1 - 1e-6, 1 - between**2, np.inf)
    explained = (each[:, None] ** 2 + each**2 - 2 * np.outer(each, each) * between) / independent
    first, second = np.unravel_index(int(np.argmax(np.triu(explained, 1))), explained.shape)
    terms = np.column_stack([np.ones(len(logs)), known[first], known[second]])
    weights, *_ = np.linalg.lstsq(terms[~output.held_out], output.logs[~output.held_out], rcond=None)
    middle = float(np.median(output.logs[~output.held_out]))
    share = _share(terms[output.held_out] @ weights, output.logs[output.held_out], middle)
    if share is not None:
        pair_names = list(columns)
        yield f"{pair_names[first]} with {pair_names[second]}", share


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


def _share(predictions: np.ndarray, logs: np.ndarray, middle: float) -> float | None:
    """Return the median absolute error of predictions over that of a constant; None where a constant does well."""
    constant = float(np.median(np.abs(logs - middle)))
    return float(np.median(np.abs(predictions - logs))) / constant if constant >= MIN_SPREAD else None


ENCODED_TARGET = LeakageCheck(
    "encoded target",
    "no feature, nor any two of them, may encode the score of unseen machines",
    "find where the column comes from; declare a column that is known only with the result as provenance",
    check_encoded_target,
)
