"""Do the splits, as written, keep what their questions forbid?"""

from __future__ import annotations

import numpy as np

from perfcast import splits
from perfcast.audit.base import Evidence, Looked
from perfcast.schema import Tag

MEANING = (
    "no split may let training know a test row's configuration, block, entity or date where its question forbids it"
)
REMEDY = "make the split again (delete its file and run snakemake); if it still leaks, the split is wrong"


def look(evidence: Evidence) -> Looked:
    """Hold every rule that a split declares against the features table and the file of the split.

    Training takes the rows of both files by position, so that their order is looked at as well.
    """
    found = []
    row = evidence.table.column_of(Tag.ROW)
    for name, frame in evidence.splits.items():
        keys = evidence.table.frame[row].to_numpy()
        if len(frame) != len(keys) or not np.array_equal(frame[row].to_numpy(), keys):
            found.append(f"the rows of the split {name} are not those of the features table, in its order")
            continue
        found += [f"{name}: {leak}" for leak in splits.leaks(evidence.table, evidence.folds(name), name)]
    folds = sum(frame.filter(like="fold_").shape[1] for frame in evidence.splits.values())
    on_purpose = [name for name in evidence.splits if not splits.is_question(name)]
    beside = f"; {', '.join(on_purpose)} leaks on purpose" if on_purpose else ""
    at = f"{len(evidence.table.frame):,} rows in {folds} folds of {len(evidence.splits)} splits{beside}"
    return Looked(at, tuple(found))
