"""Unseen CPUs: CPU models that training does not have, after training on all or a part of the others."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_entities
from perfcast.splits.declaration import declare_split
from perfcast.splits.grouped import unseen_entities
from perfcast.splits.learning_curve import share_of
from perfcast.splits.row_groups import by_tag


@declare_split(
    "unseen CPUs",
    "machines whose CPU model has no result in the training data",
    check_entities,
    scenario="a CPU model without published results",
)
def unseen_cpu(table: Table, seed: int) -> pd.DataFrame:
    """Test on CPU models that nobody has measured: five folds by entity."""
    return unseen_entities(table, seed)


def _group_entities(table: Table) -> np.ndarray:
    return by_tag(table, Tag.ENTITY)


unseen_cpu_05_percent = share_of(unseen_cpu, 5, _group_entities)
unseen_cpu_10_percent = share_of(unseen_cpu, 10, _group_entities)
unseen_cpu_20_percent = share_of(unseen_cpu, 20, _group_entities)
unseen_cpu_40_percent = share_of(unseen_cpu, 40, _group_entities)
