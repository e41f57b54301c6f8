"""Gain of the other predictions of a new CPU model from a few of its measured scores, without retraining.

Run: python benchmarks/own_measurements.py RUN_FOLDER IN_DOMAIN_SCORE TABLE [--shots 1 3 5] [--seed 0]
RUN_FOLDER is results/runs/<dataset>/<split>/<predictor> (its backtests are read), IN_DOMAIN_SCORE is
results/in_domain/<dataset>/<split>.parquet, TABLE results/features/<dataset>.parquet. Of every part at most `shots`
results are drawn as measured; the other results of the CPU model, except those of drawn submissions, are predicted
before and after, without measurements of other CPU models. The error model is fitted on backtests alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import distance_names
from perfcast.schema.table import Tag
from perfcast.schema.table_files import read_table
from perfcast.uncertainty.conformal import TEST, ConformalCalibration, outputs_of
from perfcast.uncertainty.correlation import ErrorCorrelation, ErrorRows, shared_labels

LEVEL = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("in_domain", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--shots", type=int, nargs="+", default=[1, 3, 5])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = read_table(options.table)
    row = table.column_of(Tag.ROW)
    labels = shared_labels(table).set_axis(table.frame[row].to_numpy(), axis=0)
    blocks = table.frame.set_index(row)[table.column_of(Tag.BLOCK)].astype(str)
    far = pd.read_parquet(options.in_domain)
    names = distance_names(far)

    backtested = pd.read_parquet(options.run / "backtest.parquet").merge(far, on=["fold", "backtest", "row"])
    residuals = np.log(backtested["predicted"] / backtested["measured"]).to_numpy()
    outputs, numbers = outputs_of(backtested["task"], backtested["target"]), backtested["backtest"].to_numpy()
    calibration = ConformalCalibration().fit(residuals, outputs, numbers, backtested[names])
    correlation = ErrorCorrelation().fit(
        residuals,
        labels.loc[backtested["row"]],
        outputs,
        backtests=numbers,
        expected_errors=calibration.expected_error(backtested[names]),
    )

    predictions = pd.read_parquet(options.run / "predictions.parquet")
    predictions = predictions[predictions["seed"] == predictions["seed"].min()].merge(
        far[far["backtest"] == TEST], on=["fold", "row"]
    )
    predictions = predictions.reset_index(drop=True)
    outputs = outputs_of(predictions["task"], predictions["target"])
    expected_errors = calibration.expected_error(predictions[names])
    half = calibration.half_widths(outputs, predictions[names], LEVEL)
    errors = np.log(predictions["measured"] / predictions["predicted"]).to_numpy()
    row_labels = labels.loc[predictions["row"]]
    entity, block = predictions["entity"].to_numpy(), blocks.loc[predictions["row"]].to_numpy()

    print("| measured | rows | MAPE / MedAPE before | after | 90 % interval holds | its width is |")
    print("|---|---|---|---|---|---|")
    for shots in options.shots:
        drawn = np.random.default_rng(options.seed).permutation(len(predictions))
        rank = pd.Series(entity[drawn]).groupby(entity[drawn]).cumcount().to_numpy()
        shown = np.zeros(len(predictions), dtype=bool)
        shown[drawn[rank < shots]] = True
        evaluated = ~shown & ~np.isin(block, block[shown])
        shift, left = np.zeros(len(predictions)), np.ones(len(predictions))
        for part in np.unique(entity[evaluated]):
            known, others = (np.flatnonzero(rows & (entity == part)) for rows in (shown, evaluated))
            shift[others], left[others] = correlation.predict(
                ErrorRows(row_labels.iloc[known], outputs[known], expected_errors[known]),
                errors[known],
                ErrorRows(row_labels.iloc[others], outputs[others], expected_errors[others]),
            )
        tasks = predictions["task"][evaluated].to_numpy()
        inside = np.abs(errors - shift) <= half * left
        covered = np.mean(inside[evaluated])
        print(
            f"| {shots} | {evaluated.sum()} | {_error(errors[evaluated], tasks)} "
            f"| {_error((errors - shift)[evaluated], tasks)} "
            f"| {100 * covered:.1f} % | {100 * np.mean(left[evaluated]):.0f} % of that before |"
        )


def _error(errors: np.ndarray, tasks: np.ndarray) -> str:
    """Return MAPE and MedAPE in percent, the mean over tasks."""
    percent = pd.Series(np.abs(np.exp(-errors) - 1) * 100).groupby(tasks)
    return f"{percent.mean().mean():.2f} / {percent.median().mean():.2f}"


if __name__ == "__main__":
    main()
