"""Intervals of test forecasts, calibrated on what the same fold rehearsed inside its training part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.table_files import read_parquet
from perfcast.uncertainty.conformal import TEST, ConformalCalibration, outputs_of

HALF, SUPPORT, UNLIKE, REACHED = "half", "support", "unlike", "reached"
"""Columns that `with_intervals` adds: half-width of the interval in logarithms and support, NaN where nothing is known,
the distance that takes most of the support, "" where none does, and the level of the narrowest interval that holds what
was measured (inf where none does)."""

_KEYS = ["fold", "rehearsal", "row"]
_REHEARSED = (*_KEYS, "task", "target", "measured", "predicted")


def read_rehearsals(folder: Path) -> pd.DataFrame | None:
    """Return the rehearsed predictions of a run folder, None where it has none. Raises: UserError for a broken file."""
    path = Path(folder) / "rehearsals.parquet"
    # a training that had nothing to rehearse on leaves no row, and no fold's column either
    if not path.is_file() or read_parquet(path).empty:
        return None
    return read_parquet(path, _REHEARSED)


def with_intervals(
    predictions: pd.DataFrame, rehearsed: pd.DataFrame | None, distances: pd.DataFrame | None, level: float
) -> pd.DataFrame:
    """Return the predictions with the columns HALF, SUPPORT, UNLIKE and REACHED.

    Shapes: `predictions` and `rehearsed` as runs hold them, `distances` one row per fold, rehearsal (-1: the test
    part) and row. A fold is calibrated by its own rehearsals alone.
    """
    answer = predictions.assign(**{HALF: np.nan, SUPPORT: np.nan, REACHED: np.nan})
    answer[UNLIKE] = ""
    if rehearsed is None or distances is None:
        return answer
    names = [name for name in distances if name not in _KEYS]
    known = rehearsed.merge(distances, on=_KEYS, how="inner")
    asks = outputs_of(answer["task"], answer["target"])
    asked = answer[["fold", "row"]].assign(rehearsal=TEST).merge(distances, on=_KEYS, how="left")
    for fold, own in known.groupby("fold", sort=True):
        asked_for = outputs_of(own["task"], own["target"])
        calibration = ConformalCalibration().fit(_residuals(own), asked_for, own["rehearsal"].to_numpy(), own[names])
        rows = (answer["fold"] == fold).to_numpy() & asked[names].notna().all(axis=1).to_numpy()
        far = asked.loc[rows, names]
        answer.loc[rows, HALF] = calibration.half_widths(asks[rows], far, level)
        answer.loc[rows, SUPPORT] = calibration.in_domain_score(far)
        answer.loc[rows, UNLIKE] = calibration.least_similar_group(far).to_numpy()
        answer.loc[rows, REACHED] = calibration.pit(asks[rows], far, _residuals(answer[rows]))
    return answer


def covered(predictions: pd.DataFrame) -> np.ndarray:
    """Return whether the measured score lies in the interval, 1 or 0, NaN where there is no interval, (n,)."""
    half = predictions[HALF].to_numpy(dtype=float)
    return np.where(np.isnan(half), np.nan, np.abs(_residuals(predictions)) <= half)


def _residuals(predictions: pd.DataFrame) -> np.ndarray:
    """Return log forecast - log measured, (n,)."""
    predicted, measured = (predictions[name].to_numpy(dtype=float) for name in ("predicted", "measured"))
    return np.asarray(np.log(predicted / measured))


def width(half: np.ndarray) -> np.ndarray:
    """Return the width of the interval in % of the forecast, (n,)."""
    return np.asarray(100 * (np.exp(half) - np.exp(-half)))


SUPPORT_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
SUPPORT_COLUMNS = ["split", "predictor", "from", "to", "support", "mape", "coverage", "width", "rows", "entities"]


def by_support(split: str, predictor: str, predictions: pd.DataFrame) -> pd.DataFrame:
    """Return error, coverage and width by support, tasks and seeds pooled: columns SUPPORT_COLUMNS.

    Units: mape, coverage and width in %.
    """
    known = predictions[predictions[SUPPORT].notna()]
    error = 100 * (known["predicted"] / known["measured"] - 1).abs()
    told = known.assign(mape=error, coverage=100 * covered(known), width=width(known[HALF].to_numpy(dtype=float)))
    places = pd.cut(told[SUPPORT], SUPPORT_EDGES, include_lowest=True, labels=False)
    rows = []
    for place, part in told.groupby(places, sort=True):
        edges = SUPPORT_EDGES[int(place)], SUPPORT_EDGES[int(place) + 1]
        means = part[[SUPPORT, "mape", "coverage", "width"]].mean()
        rows.append((split, predictor, *edges, *means, part["row"].nunique(), part["entity"].nunique()))
    return pd.DataFrame(rows, columns=SUPPORT_COLUMNS)


LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_ROUNDING = 1e-9
LEVEL_COLUMNS = ["split", "predictor", "level", "coverage", "rows"]


def by_level(split: str, predictor: str, predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the share of measured scores inside intervals of LEVELS: columns LEVEL_COLUMNS; none without intervals.

    Averaged over tasks, as the metrics are; seeds pooled. Units: level and coverage in %.
    """
    known = predictions[predictions[REACHED].notna()]
    rows = []
    for level in LEVELS if len(known) else ():
        inside = (known[REACHED] <= level + _ROUNDING).groupby(known["task"]).mean()
        rows.append((split, predictor, 100 * level, 100 * inside.mean(), known["row"].nunique()))
    return pd.DataFrame(rows, columns=LEVEL_COLUMNS)
