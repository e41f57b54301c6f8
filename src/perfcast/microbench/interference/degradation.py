"""Degradation of running groups, predicted by a champion of `host_interference` from windows in memory.

The windows, their statistics and the shares are those of the dataset, computed for all groups at once and without a
table: a table of a thousand columns would take longer than the prediction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.data.datasets.host.host_interference import SOURCE, WINDOW_SECONDS
from perfcast.data.datasets.host.interference_columns import LATENCY, THROUGHPUT
from perfcast.features.resource_shares import REQUIRES, SHARES, compute_shares
from perfcast.features.window_statistics import SEPARATOR, STATISTICS, describe_windows
from perfcast.microbench.interference.metrics import Metrics
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.sequences import from_matrix
from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

QUANTITIES = (THROUGHPUT, LATENCY)
_REMEDY = "run `make systems-interference`, or name its folder with --results"


def load_degradation_model(folder: Path) -> DegradationModel:
    """Return the model of a champion's folder. Raises: UserError where there is none, or it is of another dataset."""
    about = folder / "about.json"
    if not about.is_file():
        raise UserError(f"perfcast watch needs a champion of {SOURCE!r}", f"there is no {about}", _REMEDY)
    content = read_object(about)
    if content.get("dataset") != SOURCE:
        fact = f"{folder} is of {content.get('dataset')!r}"
        raise UserError(f"perfcast watch needs a champion of {SOURCE!r}", fact, _REMEDY)
    return DegradationModel(load_predictor(folder / "model"), str(content.get("predictor")))


class DegradationModel:
    """A predictor with the windows of every group.

    Shapes: a window is (WINDOW_SECONDS, metrics); a second that was not sampled is missing.
    """

    def __init__(self, predictor: Predictor, name: str = "") -> None:
        self.predictor, self.name = predictor, name
        inputs = [column for column in predictor.columns_ if column.role in (Role.FEATURE, Role.KEY)]
        self._features = [column for column in inputs if column.role is Role.FEATURE]
        self._keys = [column for column in inputs if column.role is Role.KEY]
        self._metrics = _metric_names(self._features)
        self._places = {metric: place for place, metric in enumerate(self._metrics)}
        self._windows: dict[str, deque[np.ndarray]] = {}

    def add_second(self, rows: Mapping[str, Metrics]) -> None:
        """Append a second to the window of every group; groups that are absent are forgotten."""
        for name, row in rows.items():
            values = np.array([row.get(metric, np.nan) for metric in self._metrics], dtype="float32")
            self._windows.setdefault(name, deque(maxlen=WINDOW_SECONDS)).append(values)
        for name in set(self._windows) - set(rows):
            del self._windows[name]

    def predict(self, cores: Sequence[float], neighbors: Sequence[float]) -> pd.DataFrame:
        """Return the degradation of every group with a window: one column per quantity, 0 to 1 where it is slower.

        Shapes: cores and neighbors by group, in the order of the first second of each.
        """
        names = list(self._windows)
        windows = np.full((len(names), WINDOW_SECONDS, len(self._metrics)), np.nan, dtype="float32")
        for place, seconds in enumerate(self._windows.values()):
            windows[place, WINDOW_SECONDS - len(seconds) :] = list(seconds)
        plain = self._plain_values(windows, np.array(cores, dtype=float), np.array(neighbors, dtype=float))
        frame = pd.concat([plain] * len(QUANTITIES), ignore_index=True)
        for column in self._features:
            if column.kind is Kind.SEQUENCE:
                window = windows[:, :, self._places[column.name]]
                frame[column.name] = from_matrix(np.tile(window, (len(QUANTITIES), 1)))
        for column in self._keys:
            is_task = Tag.TASK in column.tags
            text = np.repeat(QUANTITIES, len(names)) if is_task else "running"
            frame[column.name] = text if column.kind is Kind.CATEGORICAL else np.nan
        predicted = self.predictor.predict(frame[self.predictor.input_names()]).to_numpy(dtype=float)[:, 0]
        return pd.DataFrame(1 - predicted.reshape(len(QUANTITIES), len(names)).T, names, list(QUANTITIES))

    def _plain_values(self, windows: np.ndarray, cores: np.ndarray, neighbors: np.ndarray) -> pd.DataFrame:
        """Return the numerical features, (groups, columns); NaN for those that this machine cannot give."""
        last = {metric: windows[:, -1, place].astype(float) for metric, place in self._places.items()}
        values = {"cores": cores, "neighbors": neighbors, **compute_shares(last, cores, neighbors)}
        numerical = [column.name for column in self._features if column.kind is Kind.NUMERICAL]
        count, statistics = len(windows), list(STATISTICS)
        described = describe_windows(windows.transpose(2, 0, 1).reshape(-1, WINDOW_SECONDS))
        by_name = described.reshape(len(statistics), len(self._metrics), count)
        matrix = np.full((count, len(numerical)), np.nan)
        for place, name in enumerate(numerical):
            metric, separator, statistic = name.rpartition(SEPARATOR)
            if separator:
                matrix[:, place] = by_name[statistics.index(statistic), self._places[metric]]
            elif name in values:
                matrix[:, place] = values[name]
        return pd.DataFrame(matrix, columns=numerical)


def _metric_names(features: Sequence[Column]) -> list[str]:
    """Return the metrics that the features need, sorted."""
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
    return sorted(needed)
