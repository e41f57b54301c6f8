"""Do probabilities to reach a score come true? On the test rows of a run, each fold calibrated by its own backtests.

    python benchmarks/probabilities.py results spec_cpu2017 hybrid_trees

Thresholds are drawn around every forecast (6 % in logarithms, seed 0); told and come true are compared by fifths.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.uncertainty.conformal import LEVEL, TEST, ConformalCalibration, outputs_of, probability_at_least

KEYS = ["fold", "backtest", "row"]
SPREAD = 0.06


def told_and_came(results: Path, dataset: str, split: str, predictor: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of every test row to reach its threshold, and whether it did."""
    folder = results / "runs" / dataset / split / predictor
    distances = pd.read_parquet(results / "in_domain" / dataset / f"{split}.parquet")
    names = [name for name in distances if name not in KEYS]
    backtested = pd.read_parquet(folder / "backtest.parquet").merge(distances, on=KEYS)
    tested = pd.read_parquet(folder / "predictions.parquet").assign(backtest=TEST).merge(distances, on=KEYS)
    generator = np.random.default_rng(0)
    told, came = [], []
    for fold, own in backtested.groupby("fold", sort=True):
        residuals = np.log(own["predicted"] / own["measured"]).to_numpy()
        asks = outputs_of(own["task"], own["target"])
        calibration = ConformalCalibration().fit(residuals, asks, own["backtest"].to_numpy(), own[names])
        rows = tested[tested["fold"] == fold]
        questions = outputs_of(rows["task"], rows["target"])
        half = calibration.half_widths(questions, rows[names], LEVEL)
        forecast = rows["predicted"].to_numpy()
        threshold = forecast * np.exp(generator.normal(0, SPREAD, len(rows)))
        for one, median, wide, question in zip(threshold, forecast, half, questions, strict=True):
            quantiles = calibration.quantiles.get(question, calibration.quantiles[""])
            told.append(probability_at_least(one, median, median * np.exp(wide), LEVEL, quantiles))
        came += list(rows["measured"].to_numpy() >= threshold)
    return np.array(told), np.array(came)


def main() -> None:
    """Print a table: a line per split, told -> came true in % by fifths, and where 90 % or more was told."""
    results, dataset, predictor = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    for path in sorted((results / "runs" / dataset).glob(f"*/{predictor}")):
        told, came = told_and_came(results, dataset, path.parent.name, predictor)
        parts = [(told >= low) & (told < low + 0.2) for low in np.arange(0, 1, 0.2)] + [told >= 0.9]
        shown = [f"{100 * told[part].mean():.0f} -> {100 * came[part].mean():.0f}" for part in parts if part.any()]
        print(f"{path.parent.name:<16}", *[f"{text:>10}" for text in shown])


if __name__ == "__main__":
    main()
