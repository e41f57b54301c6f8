"""Page of what limits accuracy, made from results/leaderboard/error_sources/<dataset>.csv; no value is typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from markdown_text import page, table

from perfcast.evaluation import AVERAGE
from perfcast.splits import describe_split, split_label

ADDRESS = "limits.md"
_TITLE = "What limits accuracy"
_LEAD = (
    "A prediction for a machine that nobody has measured misses levels that only measurements show: that of a new "
    "microarchitecture in a suite, of a CPU model, of a submitter. An oracle adds them one after the other. It "
    "subtracts the median deviation of the *other* test results of the group, shrunken where they are few. What it "
    "takes away is the share of the error that this level causes, and the most that better facts about it could gain. "
    "What is left at the end is close to the noise of repeated measurements."
)
_NOTE = (
    "Mean absolute percentage error in %, average of the tasks, after each step. In brackets: the share of the error "
    "that the step takes away. Each step knows the steps before it. Presets and seeds are those of the"
)
NO_RESULTS = "No results yet. A run of the pipeline writes `results/leaderboard`, and this page shows them."


def generate(folder: Path) -> dict[str, str]:
    """Return the page by its address; `folder` is that of the leaderboards."""
    files = sorted((folder / "error_sources").glob("*.csv"))
    if not files:
        return {ADDRESS: page(_TITLE, NO_RESULTS)}
    sections = [section for path in files for section in _sections(path.stem, pd.read_csv(path))]
    return {ADDRESS: page(_TITLE, _LEAD, *sections)}


def _sections(dataset: str, frame: pd.DataFrame) -> Iterator[str]:
    yield f"## `{dataset}`\n\n{_NOTE} [results of this dataset](results/{dataset}.md)."
    average = frame[frame["task"] == AVERAGE]
    for split, rows in average.groupby("split", sort=False):
        predictors = rows[rows["step"] == 0].sort_values("mape")["predictor"]
        steps = list(dict.fromkeys(rows.sort_values("step", kind="stable")["known"]))
        cells = {(row.known, row.predictor): row for row in rows.itertuples()}
        lines = [[f"`{name}`", *(_cell(cells.get((step, name))) for step in steps)] for name in predictors]
        yield f"### {split_label(str(split)).capitalize()}\n\n{describe_split(str(split))}"
        yield table(["known:", *steps], lines)


def _cell(row: Any) -> str:
    if row is None:
        return "-"
    return f"{row.mape:.2f}" if pd.isna(row.share) else f"{row.mape:.2f} ({row.share:.0f}\N{NO-BREAK SPACE}%)"
