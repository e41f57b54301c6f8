"""Inputs of a predictor from windows in memory, without a table: a thousand columns would take longer than predicting.

Statistics of windows and shares of resources are those of the dataset, computed for all groups at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from perfcast.domains.interference.datasets.host_interference import WINDOW_SECONDS
from perfcast.domains.interference.features.resource_shares import REQUIRES, SHARES, compute_shares
from perfcast.domains.interference.features.window_statistics import SEPARATOR, STATISTICS, describe_windows
from perfcast.schema.table import Column, Kind, Role, Tag


def metric_names(columns: Sequence[Column]) -> set[str]:
    """Return the metrics that the features among the columns need."""
    features = [column for column in columns if column.role is Role.FEATURE]
    needed = {column.name for column in features if column.kind is Kind.SEQUENCE}
    needed |= {column.name.rpartition(SEPARATOR)[0] for column in features if SEPARATOR in column.name}
    shares = {column.name for column in features} - set(REQUIRES)
    needed |= {
        metric
        for name, share in SHARES.items()
        if name in shares
        for metrics, _ in share.forms[:1]  # a running machine drops no metric
        for metric in metrics
    }
    return needed


class WindowInputs:
    """Rows of columns that are no sequences, from windows of metrics.

    Args:
        columns: Declared columns; features and keys count.
        order: Names of the columns to make, those that are absent left out.
        places: Place of every metric in a window.
        tasks: Predicted quantities, the values of the task.
    """

    def __init__(
        self, columns: Sequence[Column], order: Sequence[str], places: Mapping[str, int], tasks: Sequence[str]
    ) -> None:
        self._places, self._tasks = places, tasks
        numerical = [column for column in columns if column.role is Role.FEATURE and column.kind is Kind.NUMERICAL]
        self._numerical = [column.name for column in numerical]
        self._keys = [column for column in columns if column.role is Role.KEY]
        self._described = _describe_places(self._numerical, places)
        self._key_rows = pd.DataFrame()
        made = [*self._numerical, *(column.name for column in self._keys)]
        names = [name for name in order if name in set(made)]
        self._order = [made.index(name) for name in names]
        # names as objects: pandas reads those of Arrow one by one
        self._names = pd.Index(names, dtype=object)

    def frame(self, windows: np.ndarray, cores: np.ndarray, neighbors: np.ndarray) -> pd.DataFrame:
        """Return one row per task and group, tasks outside. Shapes: windows (groups, seconds, metrics)."""
        values = np.tile(self._plain_values(windows, cores, neighbors), (len(self._tasks), 1))
        frame = pd.concat([pd.DataFrame(values), self._keys_of(len(windows))], axis=1).iloc[:, self._order]
        return frame.set_axis(self._names, axis=1)

    def _keys_of(self, count: int) -> pd.DataFrame:
        """Return the key columns of so many groups, made once: texts would take longer than the prediction."""
        if len(self._key_rows) != count * len(self._tasks):
            tasks = np.repeat(self._tasks, count)
            columns = {
                column.name: pd.Series(tasks if Tag.TASK in column.tags else "running", range(len(tasks)), "category")
                if column.kind is Kind.CATEGORICAL
                else pd.Series(np.nan, range(len(tasks)))
                for column in self._keys
            }
            self._key_rows = pd.DataFrame(columns, range(len(tasks)))
        return self._key_rows

    def _plain_values(self, windows: np.ndarray, cores: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
        """Return the numerical features, (groups, columns); NaN for those that this machine cannot give."""
        last = {metric: windows[:, -1, place].astype(float) for metric, place in self._places.items()}
        values = {"cores": cores, "neighbors": neighbors, **compute_shares(last, cores, neighbors)}
        matrix = np.full((len(windows), len(self._numerical)), np.nan)
        if len(self._described):
            flat = describe_windows(windows.transpose(2, 0, 1).reshape(-1, WINDOW_SECONDS))
            by_metric = flat.reshape(len(STATISTICS), len(self._places), len(windows))
            target, statistic, metric = self._described.T
            matrix[:, target] = by_metric[statistic, metric].T
        for place, name in enumerate(self._numerical):
            if name in values:
                matrix[:, place] = values[name]
        return matrix


def _describe_places(numerical: Sequence[str], places: Mapping[str, int]) -> np.ndarray:
    """Return column, statistic and metric of every statistic of a window, (n, 3) int."""
    statistics = list(STATISTICS)
    parts = [(column, *name.rpartition(SEPARATOR)) for column, name in enumerate(numerical) if SEPARATOR in name]
    rows = [(column, statistics.index(last), places[metric]) for column, metric, _, last in parts]
    return np.array(rows, dtype=int).reshape(-1, 3)
