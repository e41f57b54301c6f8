"""What drove a forecast: Shapley values of groups of characteristics against a typical machine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd

Logs = Callable[[pd.DataFrame], np.ndarray]
"""Forecasts of standard rows in natural logarithms: frame (n, columns) -> (n, targets)."""


def shapley(own: pd.DataFrame, typical: pd.DataFrame, groups: dict[str, list[str]], logs: Logs) -> np.ndarray:
    """Return what every group adds to the logarithm of the typical machine's forecast; their sum is the difference.

    Every machine is mixed with its typical one, group by group, in all 2^groups ways; derived features are made from
    the mixture. Shapes: own and typical (n, columns) row by row -> (n, groups, targets).
    Source: Shapley, 1953; for a forecast against a single reference, Lundberg and Lee, 2017.
    """
    names = list(groups)
    coalitions = [frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)]
    values = logs(_mixed(own, typical, groups, coalitions)).reshape(len(coalitions), len(own), -1)
    at = dict(zip(coalitions, values, strict=True))
    share = np.zeros((len(own), len(names), values.shape[2]))
    for number, name in enumerate(names):
        for chosen in coalitions:
            if name not in chosen:
                weight = factorial(len(chosen)) * factorial(len(names) - len(chosen) - 1) / factorial(len(names))
                share[:, number] += weight * (at[chosen | {name}] - at[chosen])
    return share


def _mixed(
    own: pd.DataFrame, typical: pd.DataFrame, groups: dict[str, list[str]], coalitions: list[frozenset[str]]
) -> pd.DataFrame:
    """Return every row once for every coalition: its groups are the machine's own, the others the typical one's."""
    rows = np.arange(len(own))
    from_typical = np.tile(rows + len(own), len(coalitions))
    taken = {
        column: np.concatenate([rows if name in chosen else rows + len(own) for chosen in coalitions])
        for name, columns in groups.items()
        for column in columns
    }
    both = pd.concat([own, typical], ignore_index=True)
    return pd.DataFrame({name: both[name].array.take(taken.get(str(name), from_typical)) for name in own})
