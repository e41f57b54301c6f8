"""Errors of every predictor on two bridges, side by side: results/leaderboard/studies/bridges.csv.

    python benchmarks/bridge_tables.py "2006 to 2017=results/bridge_2006/spec_cpu2017_from_2006" \\
        "2017 to 2026=results/cpu2026/spec_cpu2026"

Reads the evaluation and the predictions of each dataset. MAPE / MedAPE in % by suite and their mean, coverage and
interval score of the 90 % intervals, and the difference of the mean MAPE to that of `constant_ratio` with its 95 %
interval: the same CPU models are drawn for both, 1,000 times.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.evaluation import AVERAGE

REFERENCE, DRAWS = "constant_ratio", 1000
OUT = Path("results/leaderboard/studies/bridges.csv")


def errors(run: Path) -> pd.DataFrame:
    """Return the absolute percentage errors of a run, by row."""
    frame = pd.read_parquet(run / "predictions.parquet").sort_values("row")
    return frame.assign(error=100 * (frame["predicted"] / frame["measured"] - 1).abs())


def paired(run: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Return the difference of the mean MAPE of two runs of the same rows, and its interval over entities."""
    if run["row"].tolist() != reference["row"].tolist():
        raise ValueError("both runs must test the same rows")
    codes, entities = pd.factorize(run["entity"])
    weights = np.random.default_rng(0).multinomial(len(entities), np.full(len(entities), 1 / len(entities)), DRAWS)
    weights = np.vstack([np.ones(len(entities)), weights]).astype(float)
    difference = run["error"].to_numpy() - reference["error"].to_numpy()
    means = []
    for _, places in run.reset_index(drop=True).groupby("task").indices.items():
        total = np.bincount(codes[places], difference[places], len(entities))
        count = np.bincount(codes[places], minlength=len(entities))
        with np.errstate(invalid="ignore"):
            means.append(weights @ total / (weights @ count))
    value, *draws = np.mean(means, axis=0)
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def tabulate(name: str, folder: Path) -> pd.DataFrame:
    """Return the rows of a bridge: results folder / dataset."""
    metrics = pd.read_csv(folder.parent / "evaluation" / folder.name / "metrics.csv")
    runs, rows = folder.parent / "runs" / folder.name, []
    for (split, predictor), part in metrics.groupby(["split", "predictor"], sort=True):
        values = part.pivot(index="task", columns="metric", values="value")
        whole = part[part["task"] == AVERAGE].iloc[0]
        row = {"bridge": name, "split": split, "predictor": predictor, "rows": whole["rows"]}
        row["CPU models"] = whole["entities"]
        for task, line in values.sort_index().iterrows():
            kind = "mean" if task == AVERAGE else re.sub(r"C(INT|FP)\d{4}(\w+)", r"\1 \2", str(task)).lower()
            row[kind] = f"{line['mape']:.1f} / {line['medape']:.1f}"
        row["coverage (%)"] = round(values.loc[AVERAGE, "coverage"])
        row["interval score"] = round(values.loc[AVERAGE, "interval_score"])
        both = [errors(runs / split / each) for each in (predictor, REFERENCE)]
        row["less constant ratio"] = "" if predictor == REFERENCE else paired(*both)
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bridges", nargs="+", metavar="NAME=RESULTS/DATASET")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    tables = [tabulate(name, Path(folder)) for name, _, folder in (each.partition("=") for each in arguments.bridges)]
    pd.concat(tables).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
