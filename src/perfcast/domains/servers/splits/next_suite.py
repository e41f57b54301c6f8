"""Splits of the first results of a new suite: later tests, and CPU models with one known result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_subsets
from perfcast.splits.declaration import Split, SplitDeclaration, attach, declare_split
from perfcast.splits.row_groups import by_tag, by_values
from perfcast.splits.subsets import as_frame, assigned, by_key, draw_validation, without_leaks

_TESTED = "test_month"
_SETUP = (
    "hw_vendor",
    "system_stem",
    "chips",
    "threads_per_core",
    "compiler_vendor",
    "compiler_major_minor",
    "dimm_count",
    "dimm_gb",
    "mem_eff_mts",
)
_FIRST = "2026-05"
_FIRST_ROLLED = "2026-04"
"""First month that is predicted from all months before: those have results of every suite."""


def _earlier_in_training(table: Table, fold: pd.Series) -> list[str]:
    """Check that every training row was tested before every test row."""
    months = table.frame[_TESTED]
    late = int((months[fold.isin(["train", "validation"])] >= months[fold == "test"].min()).sum())
    return [f"{late} training rows not tested before the test rows"] if late else []


@declare_split(
    "tests from May 2026",
    "machines tested from May 2026 on, trained on earlier tests",
    _earlier_in_training,
    scenario="the next months, with new CPU models and compilers",
    since="2026-06",
)
def forward_2026_05(table: Table, seed: int) -> pd.DataFrame:
    """Test on tests from May 2026 on; validation rows are drawn by entity, as most test rows are of new ones.

    Months are those of the test: most results were published at once when the suite was released.
    """
    ordered = by_key(table)
    months = ordered.frame[_TESTED]
    test = (months >= pd.Timestamp(_FIRST)).to_numpy()
    unused = months.isna().to_numpy()
    validation = draw_validation(by_tag(ordered, Tag.ENTITY), test | unused, np.random.default_rng(seed))
    return as_frame(table, ordered, [without_leaks(assigned(test, validation, unused), by_tag(ordered, Tag.BLOCK))])


@declare_split(
    "next month of tests",
    "machines tested from April 2026 on, each month trained on all tests before it",
    _earlier_in_training,
    scenario="the next month",
    since="2026-06",
)
def next_month(table: Table, seed: int) -> pd.DataFrame:
    """Test on one month of tests a fold, train on all months before; validation rows are drawn by entity."""
    ordered = by_key(table)
    months = ordered.frame[_TESTED].dt.to_period("M")
    entities = by_tag(ordered, Tag.ENTITY)
    blocks = by_tag(ordered, Tag.BLOCK)
    rng = np.random.default_rng(seed)
    folds = []
    # the first month of a table has none before it
    for month in sorted(months[(months >= pd.Period(_FIRST_ROLLED)) & (months > months.min())].unique()):
        test = (months == month).to_numpy()
        later = (months.isna() | (months > month)).to_numpy()
        validation = draw_validation(entities, test | later, rng)
        folds.append(without_leaks(assigned(test, validation, later), blocks))
    return as_frame(table, ordered, folds)


def _one_known(table: Table, fold: pd.Series) -> list[str]:
    """Check that training has exactly one row of the entity that is tested, and that it is one entity."""
    entities = table.frame[table.column_of(Tag.ENTITY)]
    tested = entities[fold == "test"].unique()
    known = int(entities[fold.isin(["train", "validation"])].isin(tested).sum())
    return [] if len(tested) == known == 1 else [f"{known} training rows of {len(tested)} tested entities"]


def know_one(label: str, description: str, related: Callable[[np.ndarray, np.ndarray, int], np.ndarray]) -> Split:
    """Return the split that holds out one entity at a time, of which one drawn result is known.

    `related(tasks, setups, row)` marks the rows that a row may be known for. Every row is tested once, in a fold with
    rows of its task; what is left of its entity is unused.
    """

    def make(table: Table, seed: int) -> pd.DataFrame:
        ordered = by_key(table)
        rng = np.random.default_rng(seed)
        folds = list[np.ndarray]()
        entities = by_tag(ordered, Tag.ENTITY)
        tasks = by_tag(ordered, Tag.TASK)
        setups = by_values(ordered.frame, _SETUP)
        left = np.ones(len(entities), dtype=bool)
        while left.any():
            row = int(np.argmax(left))
            of_entity = entities == entities[row]
            known = np.flatnonzero(of_entity & related(tasks, setups, row))
            if not len(known):
                left[row] = False  # nothing else is known of it
                continue
            shown = int(rng.choice(known))
            test = left & of_entity & (tasks == tasks[row]) & related(tasks, setups, shown)
            subset = assigned(test, draw_validation(entities, of_entity, rng), of_entity & ~test)
            subset[shown] = "train"
            folds.append(subset)
            left &= ~test
        return as_frame(table, ordered, folds)

    return attach(SplitDeclaration(label, description, (check_subsets, _one_known)))(make)


known_in_another_suite = know_one(
    "1 result in another suite",
    "CPU models with one known result, in another suite",
    lambda tasks, setups, row: tasks != tasks[row],
)
known_with_another_setup = know_one(
    "1 result of another set-up",
    "CPU models with one known result in the same suite, of another set-up",
    lambda tasks, setups, row: (tasks == tasks[row]) & (setups != setups[row]),
)
