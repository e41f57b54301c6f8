"""Calibration of the probability that one machine beats another, on pairs of test rows of one task.

Each fold is calibrated by its own backtests, errors are correlated as in them.

    python benchmarks/pair_probabilities.py results spec_cpu2017 hybrid_trees

Pairs are drawn (seed 0) among rows whose predictions differ by at most 30 %; others are no choice. A line per split
has the predicted and the observed share of a higher first score in %, by fifths: with correlated and with independent
errors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import distance_names
from perfcast.schema.table_files import read_table
from perfcast.uncertainty.conformal import LEVEL, TEST, ConformalCalibration, probability_at_least
from perfcast.uncertainty.levels import ErrorRows, KnownErrors, outputs_of
from perfcast.uncertainty.rolling import count_earlier, error_rows, fit_forecast_levels

KEYS = ["fold", "backtest", "row"]
PAIRS = 4000
WIDEST_RATIO = 1.3


def read_pairs(results: Path, dataset: str, split: str, predictor: str) -> pd.DataFrame:
    """Return one row per pair of test rows: came, correlated, independent."""
    folder = results / "runs" / dataset / split / predictor
    table = read_table(results / "features" / f"{dataset}.parquet")
    distances = pd.read_parquet(results / "in_domain" / dataset / f"{split}.parquet")
    names = distance_names(distances)
    backtested = pd.read_parquet(folder / "backtest.parquet").merge(distances, on=KEYS)
    predictions = pd.read_parquet(folder / "predictions.parquet")
    first_seed = predictions[predictions["seed"] == predictions["seed"].min()]
    tested = first_seed.assign(backtest=TEST).merge(distances, on=KEYS)
    generator = np.random.default_rng(0)
    parts = []
    for fold, rows_of_fold in backtested.groupby("fold", sort=True):
        residuals = np.log(rows_of_fold["predicted"] / rows_of_fold["measured"]).to_numpy()
        outputs, numbers = outputs_of(rows_of_fold["task"], rows_of_fold["target"]), rows_of_fold["backtest"].to_numpy()
        calibration = ConformalCalibration().fit(residuals, outputs, numbers, rows_of_fold[names])
        levels, nothing = fit_forecast_levels(rows_of_fold, table), np.zeros(0, dtype=int)
        rows = tested[tested["fold"] == fold].reset_index(drop=True)
        half, errors = _half_widths(calibration, rows, names), error_rows(rows, table)
        trained = count_earlier(rows, table)
        known = KnownErrors(levels, nothing.astype(float), errors.take(nothing), trained=trained)
        pairs = _draw_pairs(rows, errors.outputs, generator)
        parts.append(_compare(rows, pairs, half, errors, (calibration, known)))
    return pd.concat(parts, ignore_index=True)


def _half_widths(calibration: ConformalCalibration, rows: pd.DataFrame, names: list[str]) -> np.ndarray:
    return calibration.half_widths(outputs_of(rows["task"], rows["target"]), rows[names], LEVEL)


def _draw_pairs(rows: pd.DataFrame, outputs: np.ndarray, generator: np.random.Generator) -> list[tuple[int, int]]:
    order = generator.permutation(len(rows))
    logs = np.log(rows["predicted"].to_numpy())
    by_output = pd.Series(order).groupby(outputs[order], sort=True)
    pairs = [(a, b) for _, places in by_output for a, b in zip(places, places.iloc[::-1], strict=True) if a != b]
    return [(a, b) for a, b in pairs if abs(logs[a] - logs[b]) < np.log(WIDEST_RATIO)][:PAIRS]


def _compare(
    rows: pd.DataFrame,
    pairs: list[tuple[int, int]],
    half: np.ndarray,
    errors: ErrorRows,
    models: tuple[ConformalCalibration, KnownErrors],
) -> pd.DataFrame:
    calibration, known = models
    predicted, measured = rows["predicted"].to_numpy(), rows["measured"].to_numpy()
    lines = []
    for a, b in pairs:
        shared = float(known.correlations(errors.take(np.array([a, b])))[0, 1])
        ratio = predicted[a] / predicted[b]
        quantiles = calibration.quantiles.get(errors.outputs[a], calibration.quantiles[""])
        line = {"came": measured[a] > measured[b]}
        for name, rho in (("correlated", shared), ("independent", 0.0)):
            spread = np.sqrt(max(half[a] ** 2 + half[b] ** 2 - 2 * rho * half[a] * half[b], 1e-12))
            line[name] = probability_at_least(1.0, ratio, ratio * float(np.exp(spread)), LEVEL, quantiles)
        lines.append(line)
    return pd.DataFrame(lines)


def main() -> None:
    """Print the table, with the Brier score of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("dataset")
    parser.add_argument("predictor")
    options = parser.parse_args()
    results, dataset, predictor = options.results, options.dataset, options.predictor
    for path in sorted((results / "runs" / dataset).glob(f"*/{predictor}")):
        pairs = read_pairs(results, dataset, path.parent.name, predictor)
        for name in ("correlated", "independent"):
            chance, came = pairs[name].to_numpy(), pairs["came"].to_numpy()
            fifths = [(chance >= low) & (chance < low + 0.2 + 1e-9) for low in np.arange(0, 1, 0.2)]
            shown = [
                f"{100 * chance[part].mean():.0f} -> {100 * came[part].mean():.0f}" for part in fifths if part.any()
            ]
            brier = np.mean((chance - came) ** 2)
            print(f"{path.parent.name:<14} {name:<12} {len(pairs):>6} pairs  Brier {brier:.3f}", *shown, sep="  ")


if __name__ == "__main__":
    main()
