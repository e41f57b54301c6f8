"""Audits of a fold: each returns one sentence per way in which a test row is known from training.

Written apart from the code that makes the splits and from its groupings, so that an error there is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from perfcast.schema import Role, Table, Tag

PARTS = ("train", "valid", "test", "unused")
_FACTOR = np.uint64(1_099_511_628_211)
"""Prime that mixes one column's hash into the next (Fowler, Noll and Vo)."""

Audit = Callable[[Table, pd.Series], list[str]]
Split = Callable[[Table, int], pd.DataFrame]
Make = TypeVar("Make", bound=Split)


def audited_by(*audits: Audit) -> Callable[[Make], Make]:
    """Declare a function to be a split, with the audits that its folds must pass beside the general ones."""

    def declare(make: Make) -> Make:
        make.audits = (parts_held, blocks_whole, *audits)  # type: ignore[attr-defined]
        return make

    return declare


def leaking_on_purpose(make: Make) -> Make:
    """Declare a function to be a split that no audit of leakage looks at: blocks may have rows on both sides.

    What it asks is answered by memory, so it is no question by which predictors are chosen or ordered.
    """
    vars(make).update(audits=(parts_held,), question=False)
    return make


def parts_held(table: Table, fold: pd.Series) -> list[str]:
    """Check that every row has a known part, and that training and test hold rows."""
    del table
    unknown = sorted(set(map(str, fold.unique())) - set(PARTS))
    found = [f"values other than {', '.join(PARTS)}: {', '.join(unknown)}"] if unknown else []
    return found + [f"no {part} rows" for part in ("train", "test") if not (fold == part).any()]


def blocks_whole(table: Table, fold: pd.Series) -> list[str]:
    """Check that no block has rows both in training and in test."""
    return _crossing(table, fold, table.select(tag=Tag.BLOCK), "blocks", known=("train", "valid"), asked="test")


def entities_apart(table: Table, fold: pd.Series) -> list[str]:
    """Check that training knows no entity of test, and that no entity is both in train and in valid."""
    names = table.select(tag=Tag.ENTITY)
    known = _crossing(table, fold, names, "entities", known=("train", "valid"), asked="test")
    return known + _crossing(table, fold, names, "entities", known=("train",), asked="valid")


def duplicates_together(table: Table, fold: pd.Series) -> list[str]:
    """Check that no test row, and no valid row, has a row of equal features to learn from."""
    names = table.select(role=Role.FEATURE)
    known = _crossing(table, fold, names, "feature vectors", known=("train", "valid"), asked="test")
    return known + _crossing(table, fold, names, "feature vectors", known=("train",), asked="valid")


def in_window(start: str, end: str) -> Audit:
    """Make the audit that training is before month `start`, test from it to before `end`, and valid after train."""

    def audit(table: Table, fold: pd.Series) -> list[str]:
        time = table.frame[table.column_of(Tag.TIME)]
        inside = (time >= pd.Timestamp(start)) & (time < pd.Timestamp(end))
        learned = fold.isin(["train", "valid"])
        late = int((learned & ~(time < pd.Timestamp(start))).sum())
        stray = int(((fold == "test") & ~inside).sum())
        found = [f"{late} training rows not known before {start}"] if late else []
        found += [f"{stray} test rows outside {start} .. {end}"] if stray else []
        if (fold == "valid").any() and time[fold == "train"].max() >= time[fold == "valid"].min():
            found.append("valid rows not later than every train row")
        return found

    return audit


def not_before(start: str) -> Audit:
    """Make the audit that no training row was known before month `start`."""

    def audit(table: Table, fold: pd.Series) -> list[str]:
        time = table.frame[table.column_of(Tag.TIME)]
        early = int((fold.isin(["train", "valid"]) & ~(time >= pd.Timestamp(start))).sum())
        return [f"{early} training rows from before {start}"] if early else []

    return audit


def revealed(start: str, shots: int) -> Audit:
    """Make the audit that training rows from month `start` on are of new entities, at most `shots` of each."""

    def audit(table: Table, fold: pd.Series) -> list[str]:
        late = table.frame[table.column_of(Tag.TIME)] >= pd.Timestamp(start)
        names = table.frame[table.select(tag=Tag.ENTITY)].astype("str")
        entity = names.iloc[:, 0]
        if names.shape[1] > 1:
            entity = entity.str.cat(names.iloc[:, 1:], sep=" ")
        learned = fold.isin(["train", "valid"])
        shown = entity[learned & late]
        known = sorted(set(shown) & set(entity[learned & ~late]))
        many = shown.value_counts()
        found = [f"{len(known)} entities revealed that were known before {start}"] if known else []
        found += (
            [f"{int((many > shots).sum())} entities with more than {shots} revealed rows"]
            if (many > shots).any()
            else []
        )
        early = int(((fold == "test") & ~late).sum())
        return found + ([f"{early} test rows before {start}"] if early else [])

    return audit


def _crossing(
    table: Table, fold: pd.Series, names: Sequence[str], what: str, *, known: Sequence[str], asked: str
) -> list[str]:
    if not names:
        return []
    keys = table.frame[list(names)]
    prints = _fingerprints(keys)
    learned, questioned = fold.isin(known).to_numpy(), (fold == asked).to_numpy()
    # equal rows have equal fingerprints; the few that share one are compared themselves, so that chance decides nothing
    shared = np.isin(prints, np.intersect1d(prints[learned], prints[questioned]))
    first, second = (keys[rows & shared].drop_duplicates() for rows in (learned, questioned))
    both = len(first) + len(second) - len(pd.concat([first, second]).drop_duplicates())
    return [f"{both} {what} both in {' or '.join(known)} and in {asked}"] if both else []


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
