"""Is what was predicted what the split asks, each once, against the score that was measured?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.audit.base import Evidence, Looked, Run, places
from perfcast.schema import Role, Tag

MEANING = "a run must predict test rows of its fold only, each once, and be held against their measured scores"
REMEDY = "train the run again"


def look(evidence: Evidence) -> Looked:
    """Hold every prediction against the split's file and the features table."""
    scores = evidence.table.frame.set_index(evidence.table.column_of(Tag.ROW))[evidence.table.select(role=Role.TARGET)]
    looked = 0
    found: list[str] = []
    for run in evidence.runs:
        frame = run.predictions()
        looked += len(frame)
        found += [f"{run.name}: {problem}" for problem in _problems(evidence, run, frame, scores)]
    return Looked(f"{looked:,} predictions of {len(evidence.runs)} runs", tuple(found))


def _problems(evidence: Evidence, run: Run, frame: pd.DataFrame, scores: pd.DataFrame) -> list[str]:
    found = []
    asked = part_of(evidence, run.split, frame) == "test"
    if not asked.all():
        found.append(f"{int((~asked).sum())} predictions of rows that are not in the fold's test part")
    if repeated := int(frame.duplicated(["seed", "target", "row"]).sum()):
        found.append(f"{repeated} rows are predicted twice")
    lines, columns = places(scores.index, frame["row"]), places(scores.columns, frame["target"])
    truth = np.where((lines >= 0) & (columns >= 0), scores.to_numpy(dtype=float)[lines, columns], np.nan)
    said = frame["measured"].to_numpy(dtype=float)
    if other := int((~np.isclose(said, truth, rtol=1e-9, atol=0)).sum()):
        found.append(f"{other} measured scores are not those of the features table")
    return found


def part_of(evidence: Evidence, split: str, frame: pd.DataFrame) -> np.ndarray:
    """Return the part that each row of a run's table has in its own fold, "" where it has none, (n,) text."""
    parts = evidence.parts(split)
    lines, columns = places(parts.index, frame["row"]), places(parts.columns, frame["fold"])
    values = parts.to_numpy(dtype="U8")[lines, columns]
    return np.where((lines >= 0) & (columns >= 0), values, "")
