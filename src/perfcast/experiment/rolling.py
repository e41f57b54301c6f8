"""Later results without training: the runs of rolling splits, and the levels of errors of a champion."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from perfcast.config.conf_files import read_yaml
from perfcast.experiment.fitting import evaluated_rows, first_error, measured_rows, predict_rows
from perfcast.experiment.training import summarize_errors
from perfcast.inference.champion import Champion, build_features
from perfcast.inference.champion_files import INTERVALS, load_champion
from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.tracking import RECORD
from perfcast.uncertainty.levels import KnownErrors
from perfcast.uncertainty.rolling import error_rows, fit_forecast_levels, log_errors, months_of, roll_predictions
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, read_object, sha256, write_json, write_text
from perfcast.utils.result_digests import record_digests
from perfcast.utils.safe_yaml import yaml_text


def roll_run(run: Path, split: str, table: Table, out: Path) -> dict[str, float]:
    """Write the run of a rolling split from the `run` of its forward split; return its metrics."""
    files = [f"{name}.parquet" for name in ("predictions", "backtest")]
    frozen, past = (read_parquet(run / name) for name in files)
    levels = fit_forecast_levels(past, table)
    predictions = roll_predictions(levels, frozen, table, "seed")
    backtests = roll_predictions(levels, past, table, "backtest")
    inner = first_error(backtests)
    with atomic_folder(out) as folder:
        shutil.copytree(run, folder, dirs_exist_ok=True)
        for name, frame in zip(files, (predictions, backtests), strict=True):
            frame.to_parquet(folder / name, index=False, write_page_checksum=True)
        write_json(folder / "validation.json", {**read_object(run / "validation.json"), "validation_mape": inner})
        config = {**read_yaml(run / "config.yaml"), "split": split}
        write_text(folder / "config.yaml", yaml_text(config, sort_keys=True))
        record = read_object(run / RECORD)
        metrics = {**summarize_errors(predictions), "validation_mape": np.nan if inner is None else inner}
        digests = {**record["sha256"], "predictions": sha256(folder / files[0])}
        write_json(folder / RECORD, {**record, "split": split, "metrics": metrics, "sha256": digests})
        record_digests(folder)
    return metrics


def learn_later_results(folder: Path, standard: Table) -> int:
    """Learn the levels of errors from the rows of a standard table that are later than a champion's training.

    Nothing is trained: the champion predicts these rows, and their errors replace those that its folder had. Returns:
    the number of rows. Raises: UserError when the champion has no levels, or the table is of another dataset.
    """
    known = find_later_errors(load_champion(folder, standard.dataset), standard)
    save_known_errors(folder, known)
    return len(known.errors)


def find_later_errors(champion: Champion, standard: Table) -> KnownErrors:
    """Return the errors of a champion in the rows of a standard table that it was not trained on.

    Rows that are older than its newest result are left out. Raises: UserError when the champion has no levels.
    """
    if champion.calibrated is None or champion.calibrated.known is None:
        fact = f"{champion.name} of {champion.dataset} has no backtest"
        raise UserError("later results need a champion with known errors", fact, "train it on more rows")
    row, time, measured = (*map(standard.column_of, (Tag.ROW, Tag.TIME)), champion.reference_data.measured.frame)
    is_later = ~standard.frame[row].isin(measured[row]) & (standard.frame[time] >= measured[time].max())
    table = build_features(standard.dataset, standard.frame[is_later], standard.columns, champion.features)
    table = table if champion.base is None else champion.base.add_estimates(table)
    predictions = predict_rows(champion.predictor, table, measured_rows(table) & evaluated_rows(table), 0, 0)
    rows = error_rows(predictions, table)
    months = months_of(predictions, table)
    before = champion.calibrated.known
    return KnownErrors(before.levels, log_errors(predictions), rows, months=months, trained=before.trained)


def save_known_errors(folder: Path, known: KnownErrors) -> None:
    """Replace the known errors of a champion's folder."""
    with atomic_folder(folder) as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        known.save(copy / INTERVALS)
        record_digests(copy)
