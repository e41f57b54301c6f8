"""Splits of the protocol: the division of rows into training and test, and the checks of its leakage.

A split is a function `name(table, seed) -> frame` declared by `declare_split`: one column per fold (fold_0 ..), with
the values train, validation (inside training), test and unused; index as `table.frame`. The order of the rows has no
influence. To add a split, add a function to a module of this package, or a module. To change one, raise the `version`
of its declaration: results of two versions never share a table.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

from perfcast import plugins
from perfcast.schema.table import Column, Kind, Role, Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.splits.declaration import LearningCurvePoint, Split, SplitDeclaration, declaration_of
from perfcast.splits.subsets import PUBLISHED_SUBSET, SUBSETS
from perfcast.utils.errors import UserError, unknown_name
from perfcast.utils.io import atomic_path

BASE = "base"
VERSION = "split_version"
"""Attributes of a file of folds: the base of a learning-curve split, absent for other splits, and the split's version.
A file of an earlier release has no version, and so has the record of a run; it is 1."""

_REMEDY = "run snakemake to make it again"


def names() -> list[str]:
    """List the splits by name."""
    return sorted(_functions())


def function(name: str) -> Split:
    """Return the function that makes a split. Raises: UserError when the name is unknown."""
    if name not in _functions():
        raise unknown_name("a split", name, names())
    return _functions()[name]


def declaration(name: str) -> SplitDeclaration:
    """Return the texts, the checks and the role of a split; those of no split have the name alone."""
    return declaration_of(_functions()[name]) if name in _functions() else SplitDeclaration(name, "", ())


def split_label(name: str) -> str:
    """Return a short name of a split in plain words; `name` itself for a name that is no split."""
    return declaration(name).label


def describe_split(name: str) -> str:
    """Return a phrase on the test rows of a split; "" for a name that is no split."""
    return declaration(name).description


def scenario_label(name: str) -> str:
    """Return the scenario of a split, what someone asks about, in plain words; "" for a split without one."""
    return declaration(name).scenario


def split_version(name: str) -> int:
    """Return the version of a split's definition; 1 for a name that is no split."""
    return declaration(name).version


def check_version(name: str, version: int, path: Path) -> None:
    """Raise a UserError where `path`, folds or a run of a split, is of another version than the split is today."""
    if version != (expected := split_version(name)):
        raise UserError(
            f"the split {name!r} must be of version {expected}, because versions test other rows",
            f"{path} is of version {version}",
            _REMEDY,
        )


def reads(column: Column) -> bool:
    """Return whether splits read a column: features, keys, tagged columns, dates, and the authors' own subsets."""
    is_read = column.role in (Role.FEATURE, Role.KEY) or column.kind is Kind.DATE or bool(column.tags)
    return is_read or column.name == PUBLISHED_SUBSET


def is_compared(name: str) -> bool:
    """Return whether errors on a split count when predictors are compared.

    They do not where the split leaks on purpose, or trains on less. A name that is no split, as of a result of an
    older version, counts.
    """
    return declaration(name).compared


def frozen_split(name: str) -> str:
    """Return the forward split whose predictors a rolling split uses, "" for any other name."""
    return declaration(name).frozen


def learning_curve_point(name: str) -> LearningCurvePoint | None:
    """Return the base and the amount of training of a learning-curve split; None for any other name."""
    return declaration(name).learning_curve


def make(name: str, table: Table, seed: int, until: str | None = None) -> pd.DataFrame:
    """Make a split and check it.

    Rows of an UNUSED column are unused. So are those published after the month `until`, such as 2024-12, so that later
    results change no figure of the splits before; splits with test rows of later months use them.
    Raises: UserError when the name is unknown, or the table leaves training or test of a fold empty; ValueError when
    the folds leak, which is an error of the split.
    """
    left_out = (table.frame[table.select(tag=Tag.UNUSED)] == 1).any(axis=1)
    if until is not None and declaration(name).since <= until:
        left_out |= table.frame[table.column_of(Tag.TIME)] > pd.Period(until, freq="M").end_time
    known = Table(table.dataset, table.frame[~left_out], table.columns, table.facts) if left_out.any() else table
    folds = function(name)(known, seed).reindex(table.frame.index, fill_value="unused")
    for fold in folds:
        for subset in ("train", "test"):
            if not (folds[fold] == subset).any():
                raise UserError(
                    f"the split {name!r} must leave rows for training and test",
                    f"{fold} of {table.dataset!r} ({len(folds)} rows) has no {subset} rows",
                    "choose another split or more data",
                )
    problems = leaks(table, folds, name)
    if problems:
        raise ValueError(f"split {name!r} of {table.dataset!r} leaks: {'; '.join(problems)}")
    return folds


def leaks(table: Table, folds: pd.DataFrame, name: str) -> list[str]:
    """Check folds against the rules of the split: one sentence per violation, none without leakage.

    Shapes: `folds` as a split returns it. Raises: UserError when the name is unknown.
    """
    checks = declaration_of(function(name)).checks
    if not folds.index.equals(table.frame.index):
        return ["the folds' index is not the table's"]
    problems = [f"{fold}: {problem}" for fold in folds for check in checks for problem in check(table, folds[fold])]
    repeated = int(((folds == "test").sum(axis=1) > 1).sum())
    return [*problems, f"{repeated} rows are test in more than one fold"] if repeated else problems


def write_folds(path: Path, folds: pd.DataFrame, table: Table, base: str | None = None, version: int = 1) -> None:
    """Write folds with the key of their rows, the version of the split, and the base of a learning-curve split."""
    row = table.column_of(Tag.ROW)
    written = folds.assign(**{row: table.frame[row]})[[row, *folds.columns]]
    written.attrs[VERSION] = version
    if base is not None:
        written.attrs[BASE] = base
    with atomic_path(path) as temporary:
        written.to_parquet(temporary, index=False, write_page_checksum=True)


def read_folds(path: Path, table: Table | None = None) -> pd.DataFrame:
    """Read what `write_folds` wrote: the columns fold_0, fold_1 and so on, with the file's attributes.

    Shapes: one row per row of `table`, in its order.
    Raises: UserError when the file is absent or no split, or of other rows than those of `table`.
    """
    content = read_parquet(path)
    folds = content.filter(like="fold_")
    folds.attrs = dict(content.attrs)
    if folds.empty or not folds.isin(SUBSETS).all(axis=None):
        fact = f"{path} has no folds" if folds.empty else f"{path} has other values"
        raise UserError(f"a split must have folds of {', '.join(SUBSETS)}", fact, _REMEDY)
    if table is not None:
        row = table.column_of(Tag.ROW)
        keys = content[row].astype("str").tolist() if row in content else None
        if keys != table.frame[row].astype("str").tolist():
            raise UserError("a split must have the rows of the table", f"{path} has other rows", _REMEDY)
    return folds


@cache
def _functions() -> dict[str, Split]:
    """Collect the splits of every module. Raises: ValueError when two modules have one of the same name."""
    return plugins.declared("splits")
