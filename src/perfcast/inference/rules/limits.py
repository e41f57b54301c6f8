"""Limits of a dataset: machines that cannot be, and what bounds the predictions of those that can."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from perfcast.inference.cells import Cells
from perfcast.schema.table import TASK_KIND

SHARE = "accuracy"
"""Start of the kinds of tasks whose results are shares of correct answers."""


class Violation(NamedTuple):
    """A machine that breaks a limit.

    `columns`: columns of the wrong value; the message names the first that the user typed. `fact`: the wrong value and
    the rule; `{entity}` in it stands for the name of the entity. `remedy`: what the user can do.
    """

    line: int
    columns: tuple[str, ...]
    fact: str
    remedy: str


def name_kinds(kinds: Mapping[str, Any]) -> list[str]:
    """Return kinds of a machine, each a word and a name; missing names have none."""
    return [f"{word} {name}" for word, name in kinds.items() if isinstance(name, str)]


class Limits:
    """Limits of a dataset without knowledge about machines: nothing is refused."""

    kind_columns: tuple[str, ...] = ()
    """Columns that tell the kinds of a machine."""
    capacities: Mapping[str, str] = {}
    """Columns that the entity bounds, with its own column: a larger value means another entity."""
    largest_values: Mapping[str, str] = {}
    """Columns with the column of the entity that has their largest possible value, beside `capacities`."""
    replaced: Mapping[str, tuple[str, ...]] = {}
    """By varied column: columns that are derived anew even where the user gave them, since they would contradict it."""
    carried: float = 0.0
    """Share of what user measurements change in estimates of the base that those on a bridge take over, for an entity
    without results in the base."""

    def find_violations(self, cells: Cells) -> Iterator[Violation]:
        """Yield every limit that a row breaks; `Violation.line` is its index."""
        yield from ()

    def find_impossible(self, cells: Cells) -> dict[int, str]:
        """Return by number of the row why a machine cannot do its task; `find_violations` knows no task."""
        return {}

    def list_vendors(self, cells: Mapping[str, Any]) -> list[Any]:
        """Return the vendors of machines, of which results must have been measured; none where any result counts."""
        return []

    def find_bounds(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest possible result of every row, (n,) each; a share is at most 1."""
        count = len(cells.index)
        kinds = cells[TASK_KIND].tolist() if TASK_KIND in cells else []
        is_share = [str(kind).startswith(SHARE) for kind in kinds] or [False] * count
        return np.zeros(count), np.where(is_share, 1.0, np.inf)

    def predict_logs(self, cells: Cells, predict: Callable[[Cells], np.ndarray]) -> np.ndarray:
        """Return the natural logarithms of the results of machines, (n, targets).

        `predict` returns those of the predictor: rules may ask it about other machines, and combine its answers.
        """
        return predict(cells)

    def limit_trust(self, cells: Mapping[str, Any]) -> str:
        """Return why an answer about a machine is never of high trust, "" where it may be."""
        return ""

    def list_kinds(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield the kinds of a machine by its `kind_columns`: an answer names those that were never measured."""
        yield from ()

    def find_deductions(self, cells: Mapping[str, Any], measured_kinds: Container[str]) -> np.ndarray:
        """Return what to take off the logarithms of predictions of kinds that were never measured, (n,) or (1,)."""
        return np.zeros(1)
