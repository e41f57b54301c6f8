"""Unseen CPU models, microarchitectures, core families and vendors: training has no result of them."""

from __future__ import annotations

import numpy as np

from perfcast.schema.table import Table, Tag
from perfcast.splits.grouped import hold_out
from perfcast.splits.learning_curve import share_of
from perfcast.splits.row_groups import by_tag

unseen_cpu = hold_out(
    "unseen CPUs",
    "machines whose CPU model has no result in the training data",
    "a CPU model without published results",
)
unseen_cpu.__name__ = "unseen_cpu"  # names the base of its learning-curve splits
unseen_microarchitecture = hold_out(
    "unseen microarchitectures",
    "machines whose core design has no result in the training data",
    "a new design of cores",
    "generation",
)
unseen_family = hold_out(
    "unseen families",
    "machines whose family of CPU models has no result in the training data",
    "a new family of CPU models",
    "family",
)
unseen_core_family = hold_out(
    "unseen core families",
    "machines whose family of cores has no result in the training data",
    "a core without measured siblings",
    "core_family",
)
unseen_system_vendor = hold_out(
    "unseen system vendors",
    "machines whose system vendor has no result in the training data",
    "a vendor without published results",
    "hw_vendor",
)


def _group_entities(table: Table) -> np.ndarray:
    return by_tag(table, Tag.ENTITY)


unseen_cpu_05_percent = share_of(unseen_cpu, 5, _group_entities)
unseen_cpu_10_percent = share_of(unseen_cpu, 10, _group_entities)
unseen_cpu_20_percent = share_of(unseen_cpu, 20, _group_entities)
unseen_cpu_40_percent = share_of(unseen_cpu, 40, _group_entities)
