"""The questions of the protocol: which rows a predictor learns from, and which it is asked about.

A split is a function `name(table, seed) -> frame` declared by `audited_by`: one column per fold (fold_0 ..), with the
values train, valid (training rows set aside for choices), test and unused; index as `table.frame`. The order of the
rows has no influence. To add a split, add a function to a module of this package, or a module; to change one, raise
VERSION: results of two versions never share a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pandas as pd

from perfcast import plugins
from perfcast.errors import UserError, unknown_name
from perfcast.schema import Column, Role, Table
from perfcast.splits._audit import Audit, Split
from perfcast.splits._files import read_folds
from perfcast.splits._parts import PUBLISHED_PART
from perfcast.splits._shrunken import Shrunken

__all__ = [
    "PUBLISHED_PART",
    "VERSION",
    "Shrunken",
    "function",
    "is_question",
    "leaks",
    "make",
    "names",
    "read_folds",
    "reads",
    "shrunken",
]

VERSION = 1


def names() -> list[str]:
    """List the splits by name."""
    return sorted(_functions())


def function(name: str) -> Split:
    """Return the function that makes a split. Raises: UserError when the name is unknown."""
    if name not in _functions():
        raise unknown_name("a split", name, names())
    return _functions()[name]


def reads(column: Column) -> bool:
    """Say whether splits look at a column: features, whatever is tagged, and the authors' own parts."""
    return column.role is Role.FEATURE or bool(column.tags) or column.name == PUBLISHED_PART


def is_question(name: str) -> bool:
    """Whether errors on a split count when predictors are compared.

    Not where it leaks, beside others' figures only, and not where it asks a question once more after less training. A
    name that is no split, as of a result made by an older version, is taken for a question.
    """
    return bool(getattr(_functions().get(name), "question", True))


def shrunken(name: str) -> Shrunken | None:
    """Return of which question a split is a form with less training, and with how much; None for any other name."""
    found: Shrunken | None = getattr(_functions().get(name), "shrunken", None)
    return found


def make(name: str, table: Table, seed: int) -> pd.DataFrame:
    """Make a split and audit it.

    Raises: UserError when the name is unknown, or the table leaves training or test of a fold empty; ValueError when
    the folds leak, which is an error of the split.
    """
    folds = function(name)(table, seed)
    for fold in folds:
        for part in ("train", "test"):
            if not (folds[fold] == part).any():
                raise UserError(
                    f"the split {name!r} must leave rows for training and test",
                    f"{fold} of {table.dataset!r} ({len(folds)} rows) has no {part} rows",
                    "choose another split or more data",
                )
    found = leaks(table, folds, name)
    if found:
        raise ValueError(f"split {name!r} of {table.dataset!r} leaks: {'; '.join(found)}")
    return folds


def leaks(table: Table, folds: pd.DataFrame, name: str) -> list[str]:
    """Audit folds against the rules of the split: one sentence per violation, none when all is well.

    Shapes: `folds` as a split returns it. Raises: UserError when the name is unknown.
    """
    audits: Sequence[Audit] = vars(function(name))["audits"]
    if not folds.index.equals(table.frame.index):
        return ["the folds' index is not the table's"]
    found = [f"{fold}: {problem}" for fold in folds for audit in audits for problem in audit(table, folds[fold])]
    repeated = int(((folds == "test").sum(axis=1) > 1).sum())
    return [*found, f"{repeated} rows are test in more than one fold"] if repeated else found


@cache
def _functions() -> dict[str, Split]:
    """Collect the splits of every public module. Raises: ValueError when two modules have one of the same name."""
    found: dict[str, Split] = {}
    for module in plugins.names("splits"):
        for name, value in vars(plugins.load("splits", module)).items():
            if not name.startswith("_") and hasattr(value, "audits") and found.setdefault(name, value) is not value:
                raise ValueError(f"two modules have a split of the name {name!r}, one is {module}")
    return found
