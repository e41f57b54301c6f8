"""Evaluation of described machines: test machines go through the path of a user's description, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.config.dataset_conf import read_dataset
from perfcast.data.sources.locations import present_sources
from perfcast.experiment.fitting import tested_rows, training_rows
from perfcast.experiment.uncertainty_fit import fit_in_domain
from perfcast.inference.batch import parse_batch
from perfcast.inference.champion import Champion
from perfcast.inference.description_levels import describe_rows, list_levels
from perfcast.inference.draw_predictions import DrawPredictions
from perfcast.inference.impute import impute_draws
from perfcast.inference.reference_data import ReferenceData
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import read_parquet, read_table
from perfcast.splits import read_folds
from perfcast.uncertainty.conformal import LEVEL, ConformalCalibration, UncertaintyModel, outputs_of

MAX_MACHINES = 300
"""Most test machines of a split, drawn by a seed: more cost time and change the metrics little."""

AT_THE_CUT, ALL_FACTS = "at the cut", "all"
"""Facts of processors that count: those that were public before the first test row of a forward split, or all."""


@dataclass(frozen=True)
class DescribedData:
    """Tables of a dataset with rows in the same order, folders of its ingested sources, and names of feature modules.

    `standard` is the table that descriptions are taken from, `table` the one with features.
    """

    standard: Table
    table: Table
    raw: Mapping[str, Path]
    features: tuple[str, ...]


@dataclass(frozen=True)
class FoldFiles:
    """Files of a fitted fold: the run with `model` and `backtest.parquet`, and the distances of the split."""

    run: Path
    distances: Path


def predict_described_splits(
    runs: Mapping[str, Path],
    dataset: str,
    *,
    conf: Path,
    table_file: Path,
    standard_file: Path,
    raw: Path,
    folds: Path,
    distances: Path,
    seed: int,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return the predictions of the described test machines of splits, see `predict_described_fold`.

    Args: `runs` has the run of the champion by split; `folds` and `distances` are folders with a file per split.
    """
    declared = read_dataset(conf, dataset)
    table, standard = read_table(table_file), read_table(standard_file)
    sources = present_sources(raw, (*declared.sources.required, *declared.sources.optional))
    data = DescribedData(standard, table, sources, tuple(declared.features))
    parts = []
    for split, run in runs.items():
        subset = read_folds(folds / f"{split}.parquet", table).iloc[:, 0].to_numpy()
        files = FoldFiles(run, distances / f"{split}.parquet")
        predictions = predict_described_fold(
            data, subset, files, label_outlier=declared.label_outlier, seed=seed, level=level
        )
        parts.append(predictions.assign(split=split))
    return pd.concat(parts, ignore_index=True)


def predict_described_fold(
    data: DescribedData,
    subset: np.ndarray,
    files: FoldFiles,
    *,
    label_outlier: float | None,
    seed: int,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return the predictions of the test machines of a split's first fold, described at every level.

    The reference data has the training rows alone. Machines of a forward split are predicted twice: with the facts of
    processors that were public before the first test row, and with all of them, as on the day of a launch.
    Machines that break a limit are left out. Shapes: subset (rows of the table,) -> one row per facts, level, row of
    the table and target, with its measured score, prediction and interval.
    """
    table = data.table
    training = training_rows(table, subset, label_outlier)
    cut = find_cut(table, np.isin(subset, ["train", "validation"]), subset == "test")
    predictor, calibrated = load_predictor(files.run / "model"), _calibrate(table, training, files)
    drawn = draw_machines(table, tested_rows(table, subset), seed)
    parts = []
    for facts, as_of in {AT_THE_CUT: cut, ALL_FACTS: None}.items():
        if facts == ALL_FACTS or as_of is not None:
            reference_data = ReferenceData.gather(data.standard, data.raw, data.features, rows=training, as_of=as_of)
            champion = Champion(
                table.dataset, files.run.name, "", data.features, predictor, reference_data, calibrated, None
            )
            parts.append(predict_described(champion, data.standard, drawn, level).assign(facts=facts))
    return pd.concat(parts, ignore_index=True)


def find_cut(table: Table, training: np.ndarray, testing: np.ndarray) -> pd.Timestamp | None:
    """Return the month of the first test row where all training rows are earlier: the cut of a forward split."""
    times = table.select(tag=Tag.TIME)
    if not times:
        return None
    when = table.frame[times[0]]
    first = pd.Timestamp(when[testing].min())
    return first if when[training].max() < first else None


def draw_machines(table: Table, rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the row numbers of at most MAX_MACHINES machines, by submission where there are such, else by row."""
    blocks = table.frame[(table.select(tag=Tag.BLOCK) or [table.column_of(Tag.ROW)])[0]]
    distinct = np.sort(blocks[rows].astype(str).unique())
    count = min(MAX_MACHINES, len(distinct))
    drawn = np.random.default_rng(seed).choice(distinct, count, replace=False)
    return np.flatnonzero(rows & blocks.astype(str).isin(drawn).to_numpy())


def predict_described(champion: Champion, standard: Table, rows: np.ndarray, level: float = LEVEL) -> pd.DataFrame:
    """Return the predictions of some rows of a standard table at every level, see `predict_described_fold`."""
    frame = standard.frame.iloc[rows]
    levels = list_levels(standard, champion.rules, list(champion.fields.columns))
    parts = [
        _predict_level(champion, standard, frame, columns, level).assign(level=number)
        for number, columns in enumerate(levels, start=1)
    ]
    return pd.concat(parts, ignore_index=True)


def _predict_level(
    champion: Champion, standard: Table, frame: pd.DataFrame, columns: tuple[str, ...], level: float
) -> pd.DataFrame:
    entries = list(describe_rows(frame, standard, columns))
    machines = parse_batch(entries, champion).machines
    drawn = DrawPredictions(impute_draws(machines, champion), champion)
    measured = frame.iloc[drawn.completed.frame.index.to_numpy(dtype=int)].reset_index(drop=True)
    times = standard.select(tag=Tag.TIME)
    when = measured[times[0]] if times else None
    parts = []
    for number, target in enumerate(champion.predictor.targets_):
        part = pd.DataFrame(
            {
                "row": measured[standard.column_of(Tag.ROW)],
                "entity": measured[standard.column_of(Tag.ENTITY)].astype(str),
                "task": measured[standard.column_of(Tag.TASK)].astype(str),
                "target": target,
                "measured": measured[target].where(drawn.has_output[:, number]),
                "predicted": drawn.medians[:, number],
            }
        )
        intervals = drawn.intervals(number, when, level)
        if intervals is None:
            intervals = pd.DataFrame({"below": np.nan, "above": np.nan}, index=part.index)
        part["low"] = part["predicted"] * np.exp(-intervals["below"].to_numpy())
        part["high"] = part["predicted"] * np.exp(intervals["above"].to_numpy())
        parts.append(part)
    long = pd.concat(parts, ignore_index=True)
    return long[long["measured"].notna()]


def _calibrate(table: Table, training: np.ndarray, files: FoldFiles) -> UncertaintyModel | None:
    """Return the uncertainty of a fold from its backtests and their distances, None without any."""
    backtests, distances = read_parquet(files.run / "backtest.parquet"), read_parquet(files.distances)
    if backtests.empty:
        return None
    lines = backtests.merge(distances, on=["fold", "backtest", "row"])
    lines = lines[lines["fold"] == 0]
    in_domain = fit_in_domain(table, training)
    residuals = np.log(lines["predicted"].to_numpy(dtype=float) / lines["measured"].to_numpy(dtype=float))
    outputs, numbers = outputs_of(lines["task"], lines["target"]), lines["backtest"].to_numpy()
    calibration = ConformalCalibration().fit(residuals, outputs, numbers, lines[in_domain.names])
    return UncertaintyModel(in_domain, calibration)
