"""Smaller machines: fewer cores than any machine that training has."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.declaration import declare_split
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import as_frame, assigned, by_key, draw_validation, without_leaks

CORES = "cores_enabled_total"
SMALLEST = 96
"""Cores of the smallest machine of the training rows."""


def _more_in_training(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row has fewer cores than any training row."""
    cores = table.frame[CORES]
    known = int((cores[fold == "test"] >= cores[fold.isin(["train", "validation"])].min()).sum())
    return [f"{known} test rows with as many cores as a training row"] if known else []


@declare_split(
    "smaller machines",
    f"machines of fewer than {SMALLEST} cores, trained on larger ones",
    _more_in_training,
    scenario="a machine smaller than all that were measured",
)
def smaller_machine(table: Table, seed: int) -> pd.DataFrame:
    """Test on machines of fewer than 96 cores, train on all others; validation rows are drawn by entity."""
    ordered = by_key(table)
    cores = ordered.frame[CORES]
    test = (cores < SMALLEST).to_numpy()
    unused = cores.isna().to_numpy()
    validation = draw_validation(by_tag(ordered, Tag.ENTITY), test | unused, np.random.default_rng(seed))
    return as_frame(table, ordered, [without_leaks(assigned(test, validation, unused), by_tag(ordered, Tag.BLOCK))])
