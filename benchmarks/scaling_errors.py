"""Errors of scaling laws in the units of the papers: losses in %, accuracies in points, with the coverage of intervals.

Metrics of the project are relative. An accuracy of 2 % that is predicted as 4 % has an error of 100 %, or of 2 points.
Run `make experiment NAME=scaling` first, then `python benchmarks/scaling_errors.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

GOOD_FOUR = ("mmlu_accuracy", "hellaswag_accuracy", "piqa_accuracy", "socialiqa_accuracy")
"""Tasks for which Bhagia et al., 2024, arXiv 2412.04403, give an error: within 2 points on both targets."""
RUNS = "runs"


def summarize(results: Path) -> pd.DataFrame:
    """Return the mean and median errors of every run, one row per dataset, split, predictor and kind of result."""
    lines = []
    for path in sorted((results / RUNS).glob("*/*/*/predictions.parquet")):
        dataset, split, predictor = path.parts[-4:-1]
        frame = pd.read_parquet(path)
        parts = frame["task"].str.rpartition("_")[2]
        for kind, rows in frame.groupby(parts):
            error = 100 * (rows["predicted"] - rows["measured"])
            if kind != "accuracy":
                error = error / rows["measured"]
            line = {"dataset": dataset, "split": split, "predictor": predictor, "kind": kind, "rows": len(rows)}
            line |= {"mean": error.abs().mean(), "median": error.abs().median(), "signed": error.mean()}
            of_four = error[rows["task"].isin(GOOD_FOUR)].abs()
            line["good_four"] = of_four.mean() if kind == "accuracy" and dataset == "llm_ladder" else float("nan")
            lines.append(line)
    return pd.DataFrame(lines)


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results/systems/scaling"))
    arguments = parser.parse_args()
    print(summarize(arguments.results).to_string(index=False, float_format=lambda value: f"{value:.2f}"))


if __name__ == "__main__":
    main()
