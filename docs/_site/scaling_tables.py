"""Errors of scaling laws beside those of lookups and trees, from results/leaderboard/kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from markdown_text import table, whole_kinds

from perfcast.splits import split_label

DATASETS = ("llm_ladder", "llm_overtraining")
ENSEMBLE = "scaling_ensemble"
PREDICTORS = {ENSEMBLE: "laws", "nearest": "nearest", "random_forest": "forest"}
_NO_RESULTS = "No results yet: `make experiment NAME=scaling` makes them."


def scaling_table(conf: Path) -> str:
    """Return mean errors of laws and of other predictors by dataset, split and kind, and the coverage of the laws."""
    lines = []
    for dataset in DATASETS:
        lines += _lines(conf, dataset, PREDICTORS, ENSEMBLE)
    headings = ["dataset", "split", "kind", *PREDICTORS.values(), "coverage of laws in %"]
    return table(headings, lines) if lines else _NO_RESULTS


def _lines(conf: Path, dataset: str, predictors: Mapping[str, str], covered: str) -> list[list[str]]:
    path = conf.parent / "results" / "leaderboard" / "kinds" / f"{dataset}.csv"
    if not path.is_file():
        return []
    frame, lines = whole_kinds(pd.read_csv(path)), []
    for (split, kind), part in frame.groupby(["split", "kind"], sort=False):
        by_name = part.set_index("predictor")
        errors = [f"{by_name.at[name, 'mean']:.2f}" if name in by_name.index else "-" for name in predictors]
        coverage = by_name["coverage"].get(covered)
        unit = str(part["unit"].iloc[0])
        lines.append(
            [
                f"[`{dataset}`](../../results/{dataset}.md)",
                split_label(str(split)),
                f"{kind} in {unit}",
                *errors,
                "-" if coverage is None or pd.isna(coverage) else f"{coverage:.0f}",
            ]
        )
    return lines
