"""Quantities that follow from the predictions of several tasks by a formula: tokens per second from latencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DERIVED = "derived"
"""Name that stands in the place of a target."""

Numbers = Mapping[str, Any]
"""Numbers or arrays by name."""


@dataclass(frozen=True)
class DerivedOutput:
    """Formula over the scores of tasks and over columns of the machine; it falls with every score.

    `compute` takes the scores by task and the cells by column, numbers or arrays alike.
    """

    name: str
    unit: str
    formula: str
    tasks: tuple[str, ...]
    columns: tuple[str, ...]
    compute: Callable[[Numbers, Numbers], Any]


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
            _is_known(cells.get(name)) for name in each.columns
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


def _is_known(cell: object) -> bool:
    return isinstance(cell, (int, float)) and cell == cell and cell > 0  # noqa: PLR0124  (NaN differs from itself)
