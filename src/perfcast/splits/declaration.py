"""Declarations of splits: label, description, checks, and whether predictors are compared on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import pandas as pd

from perfcast.schema.table import Table
from perfcast.splits.checks import Check, check_blocks, check_subsets

Split = Callable[[Table, int], pd.DataFrame]
AnySplit = TypeVar("AnySplit", bound=Split)


@dataclass(frozen=True)
class LearningCurvePoint:
    """The base of a learning-curve split, and the part of its training data that is left.

    `share` is that of the training rows, where they are drawn; `years` are the last ones before the cut, where old rows
    are left out. Exactly one of the two is set. The base itself has a share of 1, and all years.
    """

    base: str
    share: float | None = None
    years: int | None = None


@dataclass(frozen=True)
class SplitDeclaration:
    """Texts for users, checks of leakage, and the role of a split.

    `label` is a name of two or three words; `description` is a phrase on the test rows; `scenario` is what someone asks
    about in plain words, "" where the label says it. Predictors are compared on it where it is `compared`. `version` is
    raised when the rows change: results of two versions never share a table. `frozen` is the forward split
    whose trained predictors a rolling split corrects by the results of earlier months, "" for other splits. `since` is
    the month of the first test rows, as 2025-01, "" for splits without one.
    """

    label: str
    description: str
    checks: tuple[Check, ...]
    compared: bool = True
    learning_curve: LearningCurvePoint | None = None
    version: int = 1
    scenario: str = ""
    frozen: str = ""
    since: str = ""


def declare_split(
    label: str, description: str, *checks: Check, version: int = 1, scenario: str = "", since: str = ""
) -> Callable[[AnySplit], AnySplit]:
    """Declare a function to be a split, with checks of its folds beside the general ones."""
    checks = (check_subsets, check_blocks, *checks)
    return attach(SplitDeclaration(label, description, checks, version=version, scenario=scenario, since=since))


def declare_leaking_split(label: str, description: str) -> Callable[[AnySplit], AnySplit]:
    """Declare a function to be a split that leaks on purpose: blocks may have rows on both sides.

    A lookup of training rows solves it, so predictors are neither selected nor compared by it.
    """
    return attach(SplitDeclaration(label, description, (check_subsets,), compared=False))


def declare_rolling(base: Split, year: str, scenario: str = "") -> Callable[[AnySplit], AnySplit]:
    """Declare a function to be a rolling split with the rows of the forward split `base`, from the `year` on."""
    declared = replace(declaration_of(base), label=f"next month, from {year}", scenario=scenario, frozen=base.__name__)
    description = f"machines published from {year} on, corrected by all results of the months before"
    return attach(replace(declared, description=description))


def declare_learning_curve(
    amount: str, base: Split, *checks: Check, share: float | None = None, years: int | None = None
) -> Callable[[AnySplit], AnySplit]:
    """Declare a function to be a split with the test rows of `base` and a part of its training rows, others unused.

    `amount` names the part: "5 % of the training rows". The folds pass the checks of `base` and `checks`. It is a point
    on a learning curve: predictors are neither selected nor compared by it. Values tuned for `base` apply to it.
    """
    point = LearningCurvePoint(base.__name__, share, years)
    declared = declaration_of(base)
    label = f"{declared.label}, {amount}"
    description = f"{declared.description}; training data: {amount}"
    return attach(
        SplitDeclaration(
            label,
            description,
            (*declared.checks, *checks),
            compared=False,
            learning_curve=point,
            version=declared.version,
        )
    )


def declaration_of(split: Split) -> SplitDeclaration:
    """Return the declaration of a split function."""
    declared: SplitDeclaration = vars(split)["declaration"]
    return declared


def attach(declared: SplitDeclaration) -> Callable[[AnySplit], AnySplit]:
    """Declare a function to be the declared split."""

    def declare(split: AnySplit) -> AnySplit:
        vars(split)["declaration"] = declared
        return split

    return declare
