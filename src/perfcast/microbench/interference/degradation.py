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
        self._numerical = [column.name for column in self._features if column.kind is Kind.NUMERICAL]
        self._described = _describe_places(self._numerical, self._places)
        self._windows: dict[str, deque[np.ndarray]] = {}
        self._key_rows = pd.DataFrame()
        # in the order of the predictor, which then selects nothing
        made = [*self._numerical, *(column.name for column in self._keys)]
        order = [name for name in predictor.input_names() if name in set(made)]
        self._order = [made.index(name) for name in order]
        # names as objects: pandas reads those of Arrow one by one
        self._names = pd.Index(order, dtype=object)

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
        values = self._plain_values(windows, np.array(cores, dtype=float), np.array(neighbors, dtype=float))
        values = np.tile(values, (len(QUANTITIES), 1))
        frame = pd.concat([pd.DataFrame(values), self._keys_of(len(names))], axis=1).iloc[:, self._order]
        frame = frame.set_axis(self._names, axis=1)
        if predict_windows := getattr(self.predictor, "predict_windows", None):
            tiled = np.tile(windows, (len(QUANTITIES), 1, 1))
            by_name = {metric: tiled[:, :, place] for metric, place in self._places.items()}
            predicted = predict_windows(frame, by_name)
        else:
            predicted = self.predictor.predict(frame).to_numpy(dtype=float)
        shares = predicted[:, 0].reshape(len(QUANTITIES), len(names))
        return pd.DataFrame(1 - shares.T, names, list(QUANTITIES))

    def _keys_of(self, count: int) -> pd.DataFrame:
        """Return the key columns of so many groups, made once: texts would take longer than the prediction."""
        if len(self._key_rows) != count * len(QUANTITIES):
            tasks = np.repeat(QUANTITIES, count)
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
            by_metric = flat.reshape(len(STATISTICS), len(self._metrics), len(windows))
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
