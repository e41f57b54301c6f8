"""Best errors of served models by split, from results/leaderboard."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from markdown_text import table

from perfcast.evaluation import AVERAGE
from perfcast.splits import split_label

DATASET = "llm_serving"
BASELINES = {"nearest": "nearest", "LightGBM": "lightgbm", "roofline": "roofline"}
"""Predictors of columns of their own."""
_NO_RESULTS = "No results yet: `make experiment NAME=llm` makes them."


def gpu_table(conf: Path) -> str:
    """Return MAPE and MedAPE of the best predictor, its coverage, and the MAPE of baselines, averaged over tasks."""
    path = conf.parent / "results" / "leaderboard" / f"{DATASET}.csv"
    if not path.is_file():
        return _NO_RESULTS
    board = pd.read_csv(path)
    board = board[board["split"].notna() & (board["task"] == AVERAGE)]
    lines = []
    for split, part in board.groupby("split", sort=False):
        values = part.pivot_table(index="predictor", columns="metric", values="value")
        errors = values["mape"]
        best = errors.idxmin()
        lines.append(
            [
                split_label(str(split)),
                f"`{best}`",
                f"{errors[best]:.1f} / {values.at[best, 'medape']:.1f}",
                f"{values.at[best, 'coverage']:.0f}",
                *(f"{errors[name]:.1f}" if name in errors.index else "-" for name in BASELINES.values()),
            ]
        )
    return table(["split", "best predictor", "MAPE / MedAPE in %", "coverage in %", *BASELINES], lines)
