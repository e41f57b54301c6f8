"""Unseen CPU models, microarchitectures, core families and vendors: training has no result of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_entities, check_values
from perfcast.splits.declaration import Split, declare_split
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
    """Test on CPU models that nobody has measured: five folds by entity, of a small table one for each."""
    return unseen_entities(table, seed)


def leave_one_out(column: str, label: str, description: str, scenario: str = "") -> Split:
    """Return the split that holds out one value of a column at a time, a fold for each."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        return unseen_entities(table, seed, column)

    return declare_split(label, description, check_values(column), scenario=scenario)(make)


unseen_microarchitecture = leave_one_out(
    *("generation", "unseen microarchitectures", "machines whose core design has no result in the training data"),
    "a new generation of cores",
)
unseen_core_family = leave_one_out(
    *("core_family", "unseen core families", "machines of a family of cores without a result in the training data"),
    "a core without measured siblings",
)
unseen_system_vendor = leave_one_out(
    *("hw_vendor", "unseen system vendors", "machines of a system vendor without a result in the training data"),
    "a vendor that has published nothing",
)


def _group_entities(table: Table) -> np.ndarray:
    return by_tag(table, Tag.ENTITY)


unseen_cpu_05_percent = share_of(unseen_cpu, 5, _group_entities)
unseen_cpu_10_percent = share_of(unseen_cpu, 10, _group_entities)
unseen_cpu_20_percent = share_of(unseen_cpu, 20, _group_entities)
unseen_cpu_40_percent = share_of(unseen_cpu, 40, _group_entities)
