"""Predictions of one run, read from disk and checked, with calibrated intervals, their calibration, and slices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.schema.table import Kind, Table, Tag
from perfcast.schema.table_files import read_csv, read_parquet
from perfcast.uncertainty.conformal import DEVIATION, TEST, ConformalCalibration, normal_half_widths, units_of_error
from perfcast.uncertainty.levels import outputs_of
from perfcast.uncertainty.rolling import REMAINING
from perfcast.utils.errors import UserError

COLUMNS = ["row", "task", "entity", "fold", "seed", "target", "measured", "predicted"]
HISTORY_COLUMNS = ["seed", "fold", "epoch", "train_loss", "validation_loss"]
_AGAIN = "delete the run's folder and run snakemake"
YEAR = "year"
"""Name of the slice made from the TIME column."""
TARGET = "target"
"""Name of the slice of the targets of a dataset with several outputs."""


@dataclass(frozen=True)
class Predictions:
    """Predictions of one predictor for the test rows of one split, from the folder of its run.

    Shapes: `frame` has one row per (seed, fold, test row, target), columns `COLUMNS`, sorted; `history` has one row
    per (seed, fold, epoch), columns `HISTORY_COLUMNS`, and no row when the predictor has no epochs.
    """

    split: str
    predictor: str
    folder: Path
    frame: pd.DataFrame
    history: pd.DataFrame


def read_predictions(split: str, predictor: str, folder: Path) -> Predictions:
    """Read the predictions of one run folder; targets that were not measured are left out.

    Raises: UserError when the file is absent, or its content breaks the contract of a run.
    """
    predictions = _read_predictions(Path(folder) / "predictions.parquet")
    history = Path(folder) / "history.csv"
    epochs = read_csv(history) if history.is_file() else pd.DataFrame()
    if "epoch" not in epochs:
        epochs = pd.DataFrame(columns=HISTORY_COLUMNS)
    absent = [name for name in HISTORY_COLUMNS if name not in epochs]
    if absent:
        raise UserError(f"{history} must have the column {absent[0]!r}", "it lacks that column", _AGAIN)
    return Predictions(split, predictor, Path(folder), predictions, epochs[HISTORY_COLUMNS])


def _read_predictions(path: Path) -> pd.DataFrame:
    """Return the measured rows of a file of predictions in canonical order.

    Raises: UserError when it is absent, a score is not positive and finite, or a row was predicted twice.
    """
    predictions = read_parquet(path, COLUMNS)
    names = [*COLUMNS, *predictions.columns.intersection([REMAINING, DEVIATION])]
    measured_rows = predictions.loc[predictions["measured"].notna(), names]
    keys = ["seed", "task", "target", "row"]
    try:
        for column in ("measured", "predicted"):
            values = measured_rows[column].to_numpy(dtype=float)
            if not (np.isfinite(values) & (values > 0)).all():
                raise ValueError(f"{column} scores must be positive and finite")
        if measured_rows.duplicated(keys).any():
            raise ValueError("a row stands twice within a seed")
        return measured_rows.sort_values(keys, kind="stable", ignore_index=True)
    except (TypeError, ValueError) as error:
        raise UserError("predictions must be as they were saved", f"{path}: {error}", _AGAIN) from None


def build_slices(table: Table) -> pd.DataFrame:
    """Return one text column per TASK and SLICE column, and the year of the TIME column: the slices of errors.

    Shapes: index is the ROW column; a value that is missing is NaN and belongs to no slice.
    """
    names = [*table.select(tag=Tag.TASK), *table.select(tag=Tag.SLICE)]
    slices = {name: table.frame[name].astype("object") for name in names}
    times = table.select(tag=Tag.TIME, kind=Kind.DATE)
    if times:
        year = table.frame[times[0]].dt.year
        slices[YEAR] = year.astype("Int64").astype("object").where(year.notna())
    frame = pd.DataFrame(slices, index=table.frame.index)
    frame = frame.map(lambda value: _text(value) if pd.notna(value) else np.nan)
    return frame.set_index(pd.Index(table.frame[table.column_of(Tag.ROW)], name="row"))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def attach_slices(frame: pd.DataFrame, slices: pd.DataFrame) -> pd.DataFrame:
    """Return one text column per slice, aligned with the rows of `frame`.

    Raises: UserError when a predicted row is not in the table.
    """
    positions = slices.index.get_indexer(pd.Index(frame["row"]))
    unknown = positions < 0
    if unknown.any():
        fact = f"{int(unknown.sum())} of them are not"
        raise UserError("predicted rows must be in the features table", fact, "run snakemake to make both again")
    joined = slices.iloc[positions].set_axis(frame.index)
    if frame["target"].nunique() > 1:
        joined[TARGET] = frame["target"].astype(str)
    if SHIFT in frame and frame[SHIFT].nunique() > 1:
        joined[SHIFT] = frame[SHIFT].replace("", np.nan)
    return joined


CENTER = "center"
"""Column with the geometric middle of an interval that is not centered on the prediction."""
HALF_WIDTH = "half_width"
IN_DOMAIN_SCORE = "in_domain_score"
DISSIMILAR_GROUP = "least_similar_group"
SHIFT = "shift"
PIT = "pit"
"""Columns that `with_intervals` adds: half-width of the interval in logarithms and in-domain score, NaN without
backtests; the feature group that lowers the in-domain score most and the shift of the machine from the training rows,
both "" for none; and the level of the narrowest interval that contains the measured score (inf for none)."""

_KEYS = ["fold", "backtest", "row"]
_LABELS = ("kind", "block")
"""Of the rows of a file of distances: results that err alike, and rows of one measurement."""
_BACKTEST_COLUMNS = (*_KEYS, "task", "entity", "target", "measured", "predicted")


def read_backtests(folder: Path) -> pd.DataFrame | None:
    """Return the backtest predictions of a run folder, None without any. Raises: UserError for a broken file."""
    path = Path(folder) / "backtest.parquet"
    # a training without rows for backtests writes an empty file without the column of the fold
    if not path.is_file() or read_parquet(path).empty:
        return None
    return read_parquet(path, _BACKTEST_COLUMNS)


def with_intervals(
    predictions: pd.DataFrame, backtests: pd.DataFrame | None, distances: pd.DataFrame | None, level: float
) -> pd.DataFrame:
    """Return the predictions with the columns HALF_WIDTH, IN_DOMAIN_SCORE, DISSIMILAR_GROUP, SHIFT and PIT.

    Shapes: `predictions` and `backtests` as in run folders, `distances` one row per fold, backtest (-1: the test
    part) and row. Each fold is calibrated on its own backtests only, deviations of a predictor are not.
    """
    result = _with_conformal(predictions, backtests, distances, level)
    if DEVIATION in result:
        deviations = result[DEVIATION].to_numpy(dtype=float)
        result[HALF_WIDTH] = normal_half_widths(deviations, level)
        result[PIT] = [math.erf(each) for each in np.abs(_residuals(result)) / (math.sqrt(2) * deviations)]
    return result


def _with_conformal(
    predictions: pd.DataFrame, backtests: pd.DataFrame | None, distances: pd.DataFrame | None, level: float
) -> pd.DataFrame:
    result = predictions.assign(**dict.fromkeys((HALF_WIDTH, IN_DOMAIN_SCORE, PIT), np.nan))
    result[DISSIMILAR_GROUP] = result[SHIFT] = ""
    if backtests is None or distances is None:
        return result
    names = distance_names(distances)
    outputs = outputs_of(result["task"], result["target"])
    test_distances = result[["fold", "row"]].assign(backtest=TEST).merge(distances, on=_KEYS, how="left")
    if SHIFT in test_distances:
        result[SHIFT] = test_distances[SHIFT].fillna("").to_numpy()
    for fold, calibration in _calibrate_folds(backtests, distances):
        rows = (result["fold"] == fold).to_numpy() & test_distances[names].notna().all(axis=1).to_numpy()
        far = test_distances.loc[rows, names]
        remaining = _remaining(result[rows])
        result.loc[rows, HALF_WIDTH] = calibration.half_widths(outputs[rows], far, level) * remaining
        result.loc[rows, IN_DOMAIN_SCORE] = calibration.in_domain_score(far)
        result.loc[rows, DISSIMILAR_GROUP] = calibration.least_similar_group(far).to_numpy()
        result.loc[rows, PIT] = calibration.pit(outputs[rows], far, _residuals(result[rows]) / remaining)
    return result


def distance_names(distances: pd.DataFrame) -> list[str]:
    """Return the names of the distances in a file of `fold_distances`."""
    return [str(name) for name in distances if name not in (*_KEYS, SHIFT, *_LABELS)]


def _calibrate_folds(backtests: pd.DataFrame, distances: pd.DataFrame) -> Iterator[tuple[int, ConformalCalibration]]:
    """Yield every fold and its calibration; see `with_intervals`."""
    names = distance_names(distances)
    rows = backtests.merge(distances, on=_KEYS, how="inner")
    for fold in sorted(rows["fold"].unique()):
        part = rows[rows["fold"] == fold]
        outputs = outputs_of(part["task"], part["target"])
        numbers = part["backtest"].to_numpy()
        entities = part["entity"].to_numpy()
        calibration = ConformalCalibration().fit(
            _residuals(part) / _remaining(part),
            outputs,
            numbers,
            part[names],
            entities=units_of_error(entities, part["block"].to_numpy()) if "block" in part else entities,
            kinds=part["kind"].to_numpy() if "kind" in part else None,
        )
        yield int(fold), calibration


def is_covered(predictions: pd.DataFrame) -> np.ndarray:
    """Return whether the measured score lies in the interval, 1 or 0, NaN where there is no interval, (n,)."""
    half = predictions[HALF_WIDTH].to_numpy(dtype=float)
    return np.where(np.isnan(half), np.nan, np.abs(_residuals(predictions)) <= half)


def _residuals(predictions: pd.DataFrame) -> np.ndarray:
    """Return log predicted - log measured. Shapes: (n,)."""
    predicted, measured = (predictions[name].to_numpy(dtype=float) for name in ("predicted", "measured"))
    return np.asarray(np.log(predicted / measured))


def _remaining(predictions: pd.DataFrame) -> np.ndarray:
    """Return the factor of the width of every interval, (n,)."""
    return predictions.get(REMAINING, pd.Series(1.0, predictions.index)).to_numpy(dtype=float)


def interval_width(half: np.ndarray) -> np.ndarray:
    """Return the width of the interval in % of the prediction, from its half-width in logarithms. Shapes: (n,)."""
    return np.asarray(100 * (np.exp(half) - np.exp(-half)))


def interval_widths(predictions: pd.DataFrame) -> np.ndarray:
    """Return the widths of the intervals of `with_intervals` in % of the predictions, NaN without, (n,)."""
    return interval_width(predictions[HALF_WIDTH].to_numpy(dtype=float))


def interval_scores(predictions: pd.DataFrame, level: float) -> np.ndarray:
    """Return the interval score of the intervals of a level, about %, NaN without, (n,); see `error_metrics.score`."""
    half = predictions[HALF_WIDTH].to_numpy(dtype=float)
    outside = np.maximum(np.abs(_residuals(predictions)) - half, 0)
    return np.asarray(100 * (2 * half + 2 / (1 - level) * outside))


PIT_COLUMNS = ["task", "from", "to", "share", "rows"]
_BINS = np.linspace(0.0, 1.0, 11)


def signed_pit(predictions: pd.DataFrame) -> np.ndarray:
    """Return the probability integral transform of measured scores, 0 to 1, NaN without intervals, (n,).

    0.5 is a score as predicted, 1 one above all that is expected.
    """
    measured, predicted, levels = (predictions[name].to_numpy(dtype=float) for name in ("measured", "predicted", PIT))
    above = np.sign(measured - predicted)
    return np.asarray(0.5 + 0.5 * above * np.where(np.isnan(levels), np.nan, np.minimum(levels, 1.0)))


def pit_histogram(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the share of measured scores in tenths of the predictive distribution by task: columns PIT_COLUMNS.

    Each share is 0.1 for perfect predictive distributions. Seeds are pooled. Source: Gneiting, Balabdaoui and Raftery
    (2007), Journal of the Royal Statistical Society B 69.
    """
    pit = signed_pit(predictions)
    known = ~np.isnan(pit)
    rows: list[tuple[object, ...]] = []
    for task, places in predictions[known].groupby("task", sort=True).indices.items():
        values = pit[known][places]
        shares = np.histogram(values, _BINS)[0] / len(values)
        bins = zip(pairwise(_BINS), shares, strict=True)
        rows += [(str(task), low, high, share, len(values)) for (low, high), share in bins]
    return pd.DataFrame(rows, columns=PIT_COLUMNS)


SUPPORT_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
IN_DOMAIN_COLUMNS = ["from", "to", "in_domain_score", "mape", "coverage", "width", "rows", "entities"]


def errors_by_in_domain_score(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return error, coverage and median width by in-domain score, tasks and seeds pooled: columns IN_DOMAIN_COLUMNS.

    Units: mape, coverage and width in %.
    """
    known = predictions[predictions[IN_DOMAIN_SCORE].notna()]
    error = 100 * (known["predicted"] / known["measured"] - 1).abs()
    errors = known.assign(mape=error, coverage=100 * is_covered(known), width=interval_widths(known))
    bins = pd.cut(errors[IN_DOMAIN_SCORE], SUPPORT_EDGES, include_lowest=True, labels=False)
    rows = []
    for bin_number, part in errors.groupby(bins, sort=True):
        edges = SUPPORT_EDGES[int(bin_number)], SUPPORT_EDGES[int(bin_number) + 1]
        means = part[[IN_DOMAIN_SCORE, "mape", "coverage"]].mean()
        counts = part["row"].nunique(), part["entity"].nunique()
        rows.append((*edges, *means, part["width"].median(), *counts))
    return pd.DataFrame(rows, columns=IN_DOMAIN_COLUMNS)
