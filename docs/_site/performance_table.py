"""Tables of times before and now, and of networks trained on a GPU, made from the files of results/performance."""

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


def gpu_training_table(conf: Path) -> str:
    """Return the error and the seconds of an epoch of every network, on the processor and on the GPU."""
    path = conf.parent / "results" / "performance" / "gpu" / "training.csv"
    if not path.is_file():
        return "No measurements yet."
    measured = pd.read_csv(path)
    rows = []
    for network, own in measured.groupby("network"):
        by_device = dict(iter(own.groupby("device")))
        alone = by_device["cuda"][by_device["cuda"]["alone"]].iloc[0]
        same = by_device["cpu"][by_device["cpu"]["seed"] == alone["seed"]].iloc[0]
        errors = [_mean_and_spread(by_device[device]["mape"]) for device in ("cpu", "cuda")]
        epochs = [_number(run["epoch_seconds"]) for run in (same, alone)]
        fits = [_number(run["fit_seconds"]) for run in (same, alone)]
        rows.append([network, *errors, *epochs, *fits, f"{alone['utilization']:.0f} %"])
    devices = [f"{what}, {device}" for what in ("error", "epoch", "training") for device in ("CPU", "GPU")]
    return table(["network", *devices, "utilization"], rows)


def _mean_and_spread(errors: pd.Series) -> str:
    return f"{errors.mean():.1f} ± {errors.std():.1f}"


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
