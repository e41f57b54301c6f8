"""Checks of a fold for leakage: each returns one sentence per way in which training knows a test row.

Apart from the code that makes the splits and from its groupings, so that an error there is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from perfcast.schema.sequences import comparable
from perfcast.schema.table import Role, Table, Tag
from perfcast.splits.subsets import SUBSETS

_FACTOR = np.uint64(1_099_511_628_211)
"""Prime that mixes one column's hash into the next (Fowler, Noll and Vo)."""

Check = Callable[[Table, pd.Series], list[str]]


def check_subsets(table: Table, fold: pd.Series) -> list[str]:
    """Check that every row has a known subset, and that training and test have rows."""
    del table
    unknown = sorted(set(map(str, fold.unique())) - set(SUBSETS))
    problems = [f"values other than {', '.join(SUBSETS)}: {', '.join(unknown)}"] if unknown else []
    return problems + [f"no {subset} rows" for subset in ("train", "test") if not (fold == subset).any()]


def check_blocks(table: Table, fold: pd.Series) -> list[str]:
    """Check that no block has rows both in training and in test."""
    return _crossing(table, fold, table.select(tag=Tag.BLOCK), "blocks", known=("train", "validation"), tested="test")


def check_entities(table: Table, fold: pd.Series) -> list[str]:
    """Check that training knows no entity of test, and that no entity is both in train and in validation."""
    return _check_apart(table, fold, table.select(tag=Tag.ENTITY), "entities")


def check_values(name: str) -> Check:
    """Return the check that training knows no test value of a column, and that none is both in train and validation."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        return _check_apart(table, fold, [name], f"values of {name}")

    return check


def _check_apart(table: Table, fold: pd.Series, names: Sequence[str], noun: str) -> list[str]:
    known = _crossing(table, fold, names, noun, known=("train", "validation"), tested="test")
    return known + _crossing(table, fold, names, noun, known=("train",), tested="validation")


def check_duplicates(table: Table, fold: pd.Series) -> list[str]:
    """Check that no test row, and no validation row, has a row of equal features to learn from."""
    return _check_apart(table, fold, table.select(role=Role.FEATURE), "feature vectors")


def check_window(start: str, end: str) -> Check:
    """Return the check that training is before `start`, test from it to before `end`, and validation after train."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        time = table.frame[table.column_of(Tag.TIME)]
        inside = (time >= pd.Timestamp(start)) & (time < pd.Timestamp(end))
        learned = fold.isin(["train", "validation"])
        late = learned & ~(time < pd.Timestamp(start))
        stray = (fold == "test") & ~inside
        wrong = {f"training rows not known before {start}": late, f"test rows outside {start} .. {end}": stray}
        problems = count_rows(wrong)
        if (fold == "validation").any() and time[fold == "train"].max() >= time[fold == "validation"].min():
            problems.append("validation rows not later than every train row")
        return problems

    return check


def check_oldest(start: str) -> Check:
    """Return the check that no training row was known before month `start`."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        time = table.frame[table.column_of(Tag.TIME)]
        early = fold.isin(["train", "validation"]) & ~(time >= pd.Timestamp(start))
        return count_rows({f"training rows from before {start}": early})

    return check


def check_revealed(start: str, shots: int) -> Check:
    """Return the check of the training rows from month `start` on.

    They are of new entities, at most `shots` of each, and no test row of an entity is of an earlier month than they.
    """

    def check(table: Table, fold: pd.Series) -> list[str]:
        time = table.frame[table.column_of(Tag.TIME)]
        late = time >= pd.Timestamp(start)
        names = table.frame[table.select(tag=Tag.ENTITY)].astype("str")
        entity = names.iloc[:, 0]
        if names.shape[1] > 1:
            entity = entity.str.cat(names.iloc[:, 1:], sep=" ")
        learned = fold.isin(["train", "validation"])
        shown = entity[learned & late]
        counts = shown.value_counts()
        codes = pd.Series(pd.factorize(entity)[0], index=entity.index)
        latest = time.where(learned & late).groupby(codes).transform("max")
        problems = {
            f"entities revealed that were known before {start}": counts.index.isin(entity[learned & ~late]),
            f"entities with more than {shots} revealed rows": counts > shots,
            "test rows older than a revealed row of their entity": (fold == "test") & (time < latest),
            f"test rows before {start}": (fold == "test") & ~late,
        }
        return count_rows(problems)

    return check


def count_rows(problems: Mapping[str, Any]) -> list[str]:
    """Return a line with their number for every problem that rows have; the flags of rows, (n,) bool, by problem."""
    counts = {problem: int(np.sum(flags)) for problem, flags in problems.items()}
    return [f"{count} {problem}" for problem, count in counts.items() if count]


def _crossing(
    table: Table, fold: pd.Series, names: Sequence[str], noun: str, *, known: Sequence[str], tested: str
) -> list[str]:
    if not names:
        return []
    keys = comparable(table.frame, names)
    prints = _fingerprints(keys)
    learned = fold.isin(known).to_numpy()
    predicted = (fold == tested).to_numpy()
    # equal rows have equal fingerprints; the few that share one are compared themselves, so that no collision counts
    shared = np.isin(prints, np.intersect1d(prints[learned], prints[predicted]))
    first, second = (keys[rows & shared].drop_duplicates() for rows in (learned, predicted))
    both = len(first) + len(second) - len(pd.concat([first, second]).drop_duplicates())
    return [f"{both} {noun} both in {' or '.join(known)} and in {tested}"] if both else []


def _fingerprints(keys: pd.DataFrame) -> np.ndarray:
    """Return a number of 64 bits per row that is the same for rows with the same values; missing ones are the same."""
    prints: np.ndarray = np.zeros(len(keys), dtype=np.uint64)
    for name in keys:
        values = keys[name]
        if pd.api.types.is_float_dtype(values):
            # zero has two signs, and a missing number many forms
            values = (values + 0.0).where(values.notna(), np.nan)
        prints = prints * _FACTOR + pd.util.hash_pandas_object(values, index=False).to_numpy()
    return prints
