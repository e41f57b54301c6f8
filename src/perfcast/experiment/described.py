"""Evaluation of described machines: test machines go through the path of a user's description, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment.described_calibration import fit_scales
from perfcast.experiment.described_rows import DescribedData, draw_machines, find_cut, predict_described
from perfcast.experiment.fitting import fit_rows, plan_backtests, tested_rows, training_rows
from perfcast.experiment.selection import PredictorFactory, predictor_factory
from perfcast.experiment.uncertainty_fit import fit_in_domain
from perfcast.inference.champion import Champion
from perfcast.inference.reference_data import ReferenceData
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Table
from perfcast.schema.table_files import read_parquet, read_table
from perfcast.sources.locations import present_sources
from perfcast.splits import read_folds
from perfcast.uncertainty.conformal import LEVEL, ConformalCalibration, UncertaintyModel, outputs_of
from perfcast.utils.io import read_json

AT_THE_CUT, ALL_FACTS = "at the cut", "all"
"""Facts of processors that count: those that were public before the first test row of a forward split, or all."""


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
    trainer = read_yaml(conf / "trainer" / "default.yaml")
    parts = []
    for split, run in runs.items():
        subset = read_folds(folds / f"{split}.parquet", table).iloc[:, 0].to_numpy()
        files = FoldFiles(run, distances / f"{split}.parquet")
        make = predictor_factory(read_predictor(conf, run.name), _read_settings(run), trainer)
        predictions = predict_described_fold(
            data, subset, files, make, label_outlier=declared.label_outlier, seed=seed, level=level
        )
        parts.append(predictions.assign(split=split))
    return pd.concat(parts, ignore_index=True)


def _read_settings(run: Path) -> dict[str, Any]:
    """Return the hyperparameters of the first fold of a run."""
    settings = read_yaml(run / "config.yaml")["predictor"]["settings"]
    candidate = read_json(run / "validation.json")["choices"][0]["candidate"]
    first = settings[0] if isinstance(settings, list) else settings
    return dict(first[candidate])


def predict_described_fold(
    data: DescribedData,
    subset: np.ndarray,
    files: FoldFiles,
    make: PredictorFactory,
    *,
    label_outlier: float | None,
    seed: int,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return the predictions of the test machines of a split's first fold, described at every level.

    The reference data has the training rows alone. Machines of a forward split are predicted twice: with the facts of
    processors that were public before the first test row, and with all of them, as on the day of a launch.
    Intervals are calibrated by level on the backtests of the fold, which predictors of `make` are fitted for. Machines
    that break a limit are left out. Shapes: subset (rows of the table,) -> one row per facts, level, row of
    the table and target, with its measured score, prediction and interval.
    """
    table = data.table
    training = training_rows(table, subset, label_outlier)
    cut = find_cut(table, np.isin(subset, ["train", "validation"]), subset == "test")
    predictor = load_predictor(files.run / "model")
    calibrated, count = _calibrate(table, training, files)
    backtests = plan_backtests(table, subset, label_outlier, count)
    fitted = [(backtest, fit_rows(make(seed), table, backtest.fitting, None)) for backtest in backtests]
    drawn = draw_machines(table, tested_rows(table, subset), seed)
    parts = []
    for facts, as_of in {AT_THE_CUT: cut, ALL_FACTS: None}.items():
        if facts == ALL_FACTS or as_of is not None:
            scales = fit_scales(data, fitted, calibrated, seed=seed, at_the_cut=as_of is not None)
            scaled = None if calibrated is None else replace(calibrated, scales=scales)
            reference_data = ReferenceData.gather(data.standard, data.raw, data.features, rows=training, as_of=as_of)
            champion = Champion(
                table.dataset, files.run.name, "", data.features, predictor, reference_data, scaled, None
            )
            parts.append(predict_described(champion, data.standard, drawn, level).assign(facts=facts))
    return pd.concat(parts, ignore_index=True)


def _calibrate(table: Table, training: np.ndarray, files: FoldFiles) -> tuple[UncertaintyModel | None, int]:
    """Return the uncertainty of a fold from its backtests and their distances, None without any, and their number."""
    backtests, distances = read_parquet(files.run / "backtest.parquet"), read_parquet(files.distances)
    if backtests.empty:
        return None, 0
    lines = backtests.merge(distances, on=["fold", "backtest", "row"])
    lines = lines[lines["fold"] == 0]
    in_domain = fit_in_domain(table, training)
    residuals = np.log(lines["predicted"].to_numpy(dtype=float) / lines["measured"].to_numpy(dtype=float))
    outputs, numbers = outputs_of(lines["task"], lines["target"]), lines["backtest"].to_numpy()
    calibration = ConformalCalibration().fit(
        residuals, outputs, numbers, lines[in_domain.names], entities=lines["entity"].to_numpy()
    )
    return UncertaintyModel(in_domain, calibration), int(lines["backtest"].nunique())
