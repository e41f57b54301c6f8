"""Best errors on GPUs by dataset, split and task, from results/leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from markdown_text import table

from perfcast.evaluation import AVERAGE
from perfcast.splits import split_label

DATASETS = ("llm_serving", "gpu_operators")
PARTS = {"gpu_operators": ("without collectives", ("gemm", "context_attention", "generation_attention", "moe"))}
"""Dataset -> name and tasks of lines of their own: the operators that run on one GPU."""
BASELINES = {"nearest": ("nearest",), "LightGBM": ("lightgbm_large", "lightgbm"), "roofline": ("roofline",)}
"""Names of the predictors of a column: the first that has results stands there."""
_NO_RESULTS = "No results yet: `make experiment NAME=llm` makes them."


def gpu_table(conf: Path) -> str:
    """Return MAPE and MedAPE of the best predictor, its coverage, and the MAPE of baselines, averaged over tasks."""
    lines = []
    for dataset in DATASETS:
        path = conf.parent / "results" / "leaderboard" / f"{dataset}.csv"
        if path.is_file():
            board = pd.read_csv(path)
            board = board[board["split"].notna()]
            lines += _lines(dataset, "", board[board["task"] == AVERAGE])
            if dataset in PARTS:
                name, tasks = PARTS[dataset]
                lines += _lines(dataset, f", {name}", board[board["task"].isin(tasks)])
    headings = ["dataset", "split", "best predictor", "MAPE / MedAPE in %", "coverage in %"]
    return table([*headings, *BASELINES], lines) if lines else _NO_RESULTS


def _lines(dataset: str, part_name: str, board: pd.DataFrame) -> list[list[str]]:
    lines = []
    for split, part in board.groupby("split", sort=False):
        values = part.pivot_table(index="predictor", columns="metric", values="value")
        best = values["mape"].idxmin()
        lines.append(
            [
                f"[`{dataset}`](../../results/{dataset}.md){part_name}",
                split_label(str(split)),
                f"`{best}`",
                f"{values.at[best, 'mape']:.1f} / {values.at[best, 'medape']:.1f}",
                f"{values.at[best, 'coverage']:.0f}" if "coverage" in values else "-",
                *(_first(values["mape"], names) for names in BASELINES.values()),
            ]
        )
    return lines


def _first(errors: pd.Series, names: Sequence[str]) -> str:
    return next((f"{errors[name]:.1f}" for name in names if name in errors.index), "-")
