"""Calibration of probabilities to reach a score, on the test rows of a run.

Each fold is calibrated by its own backtests.

    python benchmarks/probabilities.py results spec_cpu2017 hybrid_trees

Thresholds are drawn around every predicted (6 % in logarithms, seed 0); predicted and
observed shares are compared by fifths.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import distance_names
from perfcast.uncertainty.conformal import LEVEL, TEST, ConformalCalibration, outputs_of, probability_at_least

KEYS = ["fold", "backtest", "row"]
SPREAD = 0.06


def read_calibration(results: Path, dataset: str, split: str, predictor: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of every test row to reach its threshold, and whether it did."""
    folder = results / "runs" / dataset / split / predictor
    distances = pd.read_parquet(results / "in_domain" / dataset / f"{split}.parquet")
    names = distance_names(distances)
    backtested = pd.read_parquet(folder / "backtest.parquet").merge(distances, on=KEYS)
    tested = pd.read_parquet(folder / "predictions.parquet").assign(backtest=TEST).merge(distances, on=KEYS)
    generator = np.random.default_rng(0)
    probabilities, came = [], []
    for fold, rows_of_fold in backtested.groupby("fold", sort=True):
        residuals = np.log(rows_of_fold["predicted"] / rows_of_fold["measured"]).to_numpy()
        outputs = outputs_of(rows_of_fold["task"], rows_of_fold["target"])
        calibration = ConformalCalibration().fit(
            residuals, outputs, rows_of_fold["backtest"].to_numpy(), rows_of_fold[names]
        )
        rows = tested[tested["fold"] == fold]
        row_outputs = outputs_of(rows["task"], rows["target"])
        half = calibration.half_widths(row_outputs, rows[names], LEVEL)
        predicted = rows["predicted"].to_numpy()
        threshold = predicted * np.exp(generator.normal(0, SPREAD, len(rows)))
        for limit, median, wide, output in zip(threshold, predicted, half, row_outputs, strict=True):
            quantiles = calibration.quantiles.get(output, calibration.quantiles[""])
            probabilities.append(probability_at_least(limit, median, median * np.exp(wide), LEVEL, quantiles))
        came += list(rows["measured"].to_numpy() >= threshold)
    return np.array(probabilities), np.array(came)


def main() -> None:
    """Print a table: a line per split, predicted -> observed in % by fifths, and at 90 % or more."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("dataset")
    parser.add_argument("predictor")
    options = parser.parse_args()
    results, dataset, predictor = options.results, options.dataset, options.predictor
    for path in sorted((results / "runs" / dataset).glob(f"*/{predictor}")):
        probabilities, came = read_calibration(results, dataset, path.parent.name, predictor)
        parts = [(probabilities >= low) & (probabilities < low + 0.2) for low in np.arange(0, 1, 0.2)] + [
            probabilities >= 0.9
        ]
        shown = [
            f"{100 * probabilities[part].mean():.0f} -> {100 * came[part].mean():.0f}" for part in parts if part.any()
        ]
        print(f"{path.parent.name:<16}", *[f"{text:>10}" for text in shown])


if __name__ == "__main__":
    main()
