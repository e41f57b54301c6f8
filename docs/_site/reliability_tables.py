"""Tables of faults and of mutation scores, made from the files of results/reliability."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from markdown_text import table

BEFORE = "before.csv"
"""Cases and failures of an earlier commit, and what a failure was."""
RUNS = ("attack.csv", "faults.csv")
"""Files of `make attack` and `make faults`: fault, cases, failed, skipped."""
MUTANTS = ("mutants_before.csv", "mutants.csv")
_KINDS = ("cases", "lost", "silent", "tracebacks", "failed")


def fault_table(conf: Path) -> str:
    """Return the faults with their cases and failures, at the earlier commit and now."""
    folder = conf.parent / "results" / "reliability"
    before = pd.read_csv(folder / BEFORE).set_index("fault")
    now = _read_runs(folder)
    headings = ["fault", "cases before", "lost", "silently wrong", "tracebacks", "failed in all", "cases now", "failed"]
    columns = [*((before, name) for name in _KINDS), *((now, name) for name in ("cases", "failed"))]
    rows = [
        [fault, *(f"{frame.loc[fault, name]:,}" if fault in frame.index else "" for frame, name in columns)]
        for fault in [*before.index, *sorted(set(now.index) - set(before.index))]
    ]
    return table(headings, [*rows, ["**all**", *(f"{frame[name].sum():,}" for frame, name in columns)]])


def _read_runs(folder: Path) -> pd.DataFrame:
    """Return cases and failures by fault, of all runs together; a skipped case is none."""
    frames = [pd.read_csv(folder / name) for name in RUNS if (folder / name).exists()]
    if not frames:
        return pd.DataFrame(columns=["cases", "failed"], dtype=int)
    joined = pd.concat(frames)
    joined["cases"] -= joined["skipped"]
    return joined.groupby("fault")[["cases", "failed"]].sum()


def mutant_table(conf: Path) -> str:
    """Return the share of planted faults that the tests near them notice, by area, before and now."""
    folder = conf.parent / "results" / "reliability"
    scores = [pd.read_csv(folder / name).set_index("area") for name in MUTANTS if (folder / name).exists()]
    rows = [[area, *(_score(score, area) for score in scores)] for area in scores[-1].index]
    return table(["area", "before", "now"][: len(scores) + 1], rows)


def _score(scores: pd.DataFrame, area: str) -> str:
    if area not in scores.index:
        return "not run"
    killed, planted = scores.loc[area, "killed"], scores.loc[area, "mutants"]
    return f"{killed} of {planted} ({100 * killed / planted:.0f} %)"
