"""Degradation of running groups, predicted by a champion of `host_interference` from windows in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.interference.datasets.host_interference import LATENCY, SOURCE, THROUGHPUT, WINDOW_SECONDS
from perfcast.domains.interference.features.resource_shares import SHARES, compute_shares
from perfcast.domains.interference.features.window_statistics import SEPARATOR, STATISTICS, describe_windows
from perfcast.domains.interference.measuring.metrics import Metrics
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.uncertainty.conformal import UncertaintyModel, outputs_of
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

QUANTITIES = (THROUGHPUT, LATENCY)
LOW, HIGH = "_low", "_high"
"""Endings of the names of an interval's ends."""
REFRESH = 30
"""Predictions between two comparisons with the training data: those take longer than a prediction."""
_REMEDY = "run `make experiment NAME=interference`, or name its folder with --results"


def load_degradation_model(folder: Path) -> DegradationModel:
    """Return the model of a champion's folder. Raises: UserError where there is none, or it is of another dataset."""
    about = folder / "about.json"
    if not about.is_file():
        raise UserError(f"there must be a champion of {SOURCE!r}", f"there is no {about}", _REMEDY)
    content = read_object(about)
    if content.get("dataset") != SOURCE:
        fact = f"{folder} is of {content.get('dataset')!r}"
        raise UserError(f"there must be a champion of {SOURCE!r}", fact, _REMEDY)
    intervals = folder / "intervals"
    uncertainty = UncertaintyModel.load(intervals) if intervals.is_dir() else None
    return DegradationModel(load_predictor(folder / "model"), str(content.get("predictor")), uncertainty)


class DegradationModel:
    """A predictor with the windows of every group.

    Intervals are of 90 %, from the errors of backtests at the distance of a group from the training data. The distance
    is measured when a group is new, when all windows are full, and again after REFRESH predictions.
    Shapes: a window is (WINDOW_SECONDS, metrics); a second that was not sampled is missing.
    """

    def __init__(self, predictor: Predictor, name: str = "", uncertainty: UncertaintyModel | None = None) -> None:
        self.predictor, self.name, self.uncertainty = predictor, name, uncertainty
        columns = predictor.columns_
        compared = uncertainty.in_domain.columns if uncertainty else ()
        self._metrics = sorted(_needed_metrics(columns) | _needed_metrics(compared))
        self._places = {metric: place for place, metric in enumerate(self._metrics)}
        # in the order of the predictor, which then selects nothing
        self._inputs = _WindowInputs(columns, predictor.input_names(), self._places, QUANTITIES)
        self._compared = _WindowInputs(compared, [column.name for column in compared], self._places, QUANTITIES)
        self._windows: dict[str, deque[np.ndarray]] = {}
        self._half_widths = np.empty((0, len(QUANTITIES)))
        self._measured: tuple[bool, tuple[str, ...]] = (False, ())
        self._age = 0

    def add_second(self, rows: Mapping[str, Metrics]) -> None:
        """Append a second to the window of every group; groups that are absent are forgotten."""
        for name, row in rows.items():
            values = np.array([row.get(metric, np.nan) for metric in self._metrics], dtype="float32")
            self._windows.setdefault(name, deque(maxlen=WINDOW_SECONDS)).append(values)
        for name in set(self._windows) - set(rows):
            del self._windows[name]

    def predict(self, cores: Sequence[float], neighbors: Sequence[float]) -> pd.DataFrame:
        """Return the degradation of every group with a window: 0 where it is as fast as alone, 1 where it stands still.

        Shapes: cores and neighbors by group, in the order of the first second of each -> one column per quantity, and
        the ends of its interval, missing without an uncertainty model.
        """
        names = list(self._windows)
        windows = np.full((len(names), WINDOW_SECONDS, len(self._metrics)), np.nan, dtype="float32")
        for place, seconds in enumerate(self._windows.values()):
            windows[place, WINDOW_SECONDS - len(seconds) :] = list(seconds)
        shared, others = np.array(cores, dtype=float), np.array(neighbors, dtype=float)
        frame = self._inputs.frame(windows, shared, others)
        if predict_windows := getattr(self.predictor, "predict_windows", None):
            tiled = np.tile(windows, (len(QUANTITIES), 1, 1))
            by_name = {metric: tiled[:, :, place] for metric, place in self._places.items()}
            predicted = predict_windows(frame, by_name)
        else:
            predicted = self.predictor.predict(frame).to_numpy(dtype=float)
        shares = predicted[:, 0].reshape(len(QUANTITIES), len(names)).T
        half_widths = self._find_half_widths(names, windows, shared, others)
        columns = {}
        for quantity, share, half in zip(QUANTITIES, shares.T, half_widths.T, strict=True):
            columns[quantity] = 1 - share
            # neighbors make nothing faster than alone, which an interval in logarithms does not know
            most = np.minimum(share * np.exp(half), np.maximum(share, 1.0))
            columns[quantity + LOW], columns[quantity + HIGH] = 1 - most, 1 - share * np.exp(-half)
        return pd.DataFrame(columns, names)

    def _find_half_widths(
        self, names: Sequence[str], windows: np.ndarray, cores: np.ndarray, neighbors: np.ndarray
    ) -> np.ndarray:
        """Return half the width of every interval, in logarithms of the share, (groups, quantities)."""
        if self.uncertainty is None:
            return np.full((len(names), len(QUANTITIES)), np.nan)
        are_full = all(len(window) == WINDOW_SECONDS for window in self._windows.values())
        if self._measured != (are_full, tuple(names)) or self._age >= REFRESH:
            frame = self._compared.frame(windows, cores, neighbors)
            tasks = pd.Series(np.repeat(QUANTITIES, len(names)))
            outputs = outputs_of(tasks, self.predictor.targets_[0])
            below = self.uncertainty.intervals(frame, outputs)["below"].to_numpy(dtype=float)
            self._half_widths = below.reshape(len(QUANTITIES), len(names)).T
            self._measured, self._age = (are_full, tuple(names)), 0
        self._age += 1
        return self._half_widths


def _needed_metrics(columns: Sequence[Column]) -> set[str]:
    """Return the metrics that the features among the columns need; a running machine drops none."""
    names = {column.name: column.kind for column in columns if column.role is Role.FEATURE}
    needed = {name for name, kind in names.items() if kind is Kind.SEQUENCE}
    needed |= {name.rpartition(SEPARATOR)[0] for name in names if SEPARATOR in name}
    shares = [share for name, share in SHARES.items() if name in names]
    return needed | {metric for share in shares for metric in share.metrics}


class _WindowInputs:
    """Rows of columns that are no sequences, from windows of metrics, without a table: it would take longer.

    Statistics of windows and shares of resources are those of the dataset, computed for all groups at once.

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
        self._numerical = [c.name for c in columns if c.role is Role.FEATURE and c.kind is Kind.NUMERICAL]
        self._keys = [column for column in columns if column.role is Role.KEY]
        statistics = list(STATISTICS)
        parts = [(place, *name.rpartition(SEPARATOR)) for place, name in enumerate(self._numerical)]
        described = [(place, statistics.index(last), places[name]) for place, name, sign, last in parts if sign]
        self._described = np.array(described, dtype=int).reshape(-1, 3)
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
