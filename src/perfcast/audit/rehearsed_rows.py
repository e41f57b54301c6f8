"""Did rehearsals, by which widths of intervals and settings are chosen, stay inside training?"""

from __future__ import annotations

import numpy as np

from perfcast.audit.base import LEARNED, Evidence, Looked
from perfcast.audit.tested_rows import part_of

MEANING = "a fold must rehearse on rows of its own training part, each once, never on test rows"
REMEDY = "train the run again"


def look(evidence: Evidence) -> Looked:
    """Hold every rehearsed prediction against the split's file."""
    looked = 0
    found = []
    for run in evidence.runs:
        frame = run.rehearsals()
        if frame.empty:
            continue
        looked += len(frame)
        part = part_of(evidence, run.split, frame)
        tested, outside = (
            int((part == "test").sum()),
            int(np.logical_and.reduce([part != one for one in LEARNED]).sum()),
        )
        if tested:
            found.append(f"{run.name}: {tested} rehearsed rows are test rows of the same fold")
        if outside > tested:
            found.append(f"{run.name}: {outside - tested} rehearsed rows are not in the fold's training part")
        if repeated := int(frame.duplicated(["fold", "seed", "rehearsal", "target", "row"]).sum()):
            found.append(f"{run.name}: {repeated} rows are in one rehearsal twice")
    return Looked(f"{looked:,} rehearsed predictions of {len(evidence.runs)} runs", tuple(found))
