"""Degradation of running groups, predicted by a champion of `host_interference` from windows in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.interference.datasets.host_interference import SOURCE, WINDOW_SECONDS
from perfcast.domains.interference.datasets.interference_columns import LATENCY, THROUGHPUT
from perfcast.domains.interference.measuring.metrics import Metrics
from perfcast.domains.interference.measuring.window_inputs import WindowInputs, metric_names
from perfcast.predictors.predictor import Predictor, load_predictor
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
        self._metrics = sorted(metric_names(columns) | metric_names(compared))
        self._places = {metric: place for place, metric in enumerate(self._metrics)}
        # in the order of the predictor, which then selects nothing
        self._inputs = WindowInputs(columns, predictor.input_names(), self._places, QUANTITIES)
        self._compared = WindowInputs(compared, [column.name for column in compared], self._places, QUANTITIES)
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
