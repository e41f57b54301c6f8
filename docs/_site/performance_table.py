"""Table of times before and now, made from the files of results/performance."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from markdown_text import table

COLUMNS = ("measure", "before", "now", "goal", "unit", "reference_seconds")
"""`before` and `goal` may be empty. `reference_seconds`: processor time of benchmarks/reference.py beside `now`."""
RATE = "1/s"
"""Unit of measures that are better when they are larger."""


def performance_table(conf: Path) -> str:
    """Return every measure before and now, with its goal and, for processor times, in units of the reference."""
    folder = conf.parent / "results" / "performance"
    rows = []
    for path in sorted(folder.glob("*.csv")):
        for line in pd.read_csv(path)[list(COLUMNS)].itertuples(index=False):
            numbers = [_number(line.before), _number(line.now), _goal(line.now, line.goal, line.unit)]
            rows.append([line.measure, *numbers, line.unit, _ratio(line.now, line.before), _in_references(line)])
    headings = ["measure", "before", "now", "goal", "unit", "now / before", "in reference computations"]
    return table(headings, rows) if rows else "`make benchmark` measures them."


def _number(value: float) -> str:
    return "" if pd.isna(value) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _goal(now: float, goal: float, unit: str) -> str:
    """Return the goal, marked where it is not met; a rate ("1/s") is better when it is larger."""
    met = now >= goal if unit == "1/s" else now <= goal
    return "" if pd.isna(goal) else f"{_number(goal)}{'' if met else ' (missed)'}"


def _ratio(now: float, before: float) -> str:
    return "" if pd.isna(before) else f"{now / before:.2f}"


def _in_references(line: object) -> str:
    seconds, unit, now = (getattr(line, name) for name in ("reference_seconds", "unit", "now"))
    in_seconds = now / 1000 if unit.startswith("ms") else now
    return f"{in_seconds / seconds:,.3g}" if "CPU" in unit and not pd.isna(seconds) else ""
