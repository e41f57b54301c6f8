"""Quantities that follow from the predictions of several tasks by a formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DERIVED = "derived"
"""Name that stands in the place of a target."""

_LARGEST_LOG, _HALVINGS = 50.0, 60
"""Natural logarithm of the largest score that is searched, and the steps of the search."""

Numbers = Mapping[str, Any]
"""Numbers or arrays by name."""


@dataclass(frozen=True)
class DerivedOutput:
    """Formula over the scores of tasks and over columns of the machine; it falls with every score.

    `compute` takes the scores by task and the cells by column, numbers or arrays alike. A measured value stands for a
    score of the task `solved`, "" for none; `aliases` are other names of the quantity.
    """

    name: str
    unit: str
    formula: str
    tasks: tuple[str, ...]
    columns: tuple[str, ...]
    compute: Callable[[Numbers, Numbers], Any]
    solved: str = ""
    aliases: tuple[str, ...] = ()

    def solve(self, value: float, scores: Numbers, cells: Numbers) -> float:
        """Return the score of `solved` at which the quantity has a value, given the others; 0 where there is none."""
        low, high = -_LARGEST_LOG, _LARGEST_LOG
        if not self.compute({**scores, self.solved: math.exp(low)}, cells) > value:
            return 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_less = self.compute({**scores, self.solved: math.exp(middle)}, cells) > value
            low, high = (middle, high) if is_less else (low, middle)
        return math.exp(middle)


@dataclass(frozen=True)
class DerivedValue:
    """Derived quantity of one machine; `low` to `high` is its interval. Units: `unit`.

    The ends of the interval are those of the predictions, as if their errors were fully correlated.
    """

    name: str
    median: float
    low: float | None
    high: float | None
    unit: str
    formula: str

    def cells(self) -> dict[str, Any]:
        """Return the columns of a table of estimates."""
        return {
            **{"task": self.name, "target": DERIVED, "estimate": self.median, "low": self.low, "high": self.high},
            **{"unit": self.unit, "published": 0},
        }


def derive_values(
    outputs: Sequence[DerivedOutput], scores: Mapping[str, tuple[float, float | None, float | None]], cells: Numbers
) -> tuple[DerivedValue, ...]:
    """Return the derived quantities whose tasks and columns are known.

    Args: `scores` are median, low and high by task, `cells` the numbers of the machine by column.
    """
    values = []
    for each in outputs:
        if not all(task in scores for task in each.tasks) or not all(
            is_known(cells.get(name)) for name in each.columns
        ):
            continue
        median, high, low = (
            None
            if any(scores[task][place] is None for task in each.tasks)
            else float(each.compute({task: scores[task][place] for task in each.tasks}, cells))
            for place in range(3)
        )
        if median is not None:
            values.append(DerivedValue(each.name, median, low, high, each.unit, each.formula))
    return tuple(values)


def is_known(cell: object) -> bool:
    """Return whether a cell is a number above 0."""
    return isinstance(cell, (int, float)) and cell == cell and cell > 0  # noqa: PLR0124  (NaN differs from itself)
