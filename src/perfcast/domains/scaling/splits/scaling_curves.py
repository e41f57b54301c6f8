"""Learning-curve splits of training runs: the test rows of a larger model after training on a share of the small runs.

They tell how many small runs are enough. Runs are drawn whole, at random and nested.
"""

from __future__ import annotations

import numpy as np

from perfcast.domains.scaling.splits.scaling_runs import larger_model_1b, larger_model_2b
from perfcast.schema.table import Table, Tag
from perfcast.splits.learning_curve import share_of
from perfcast.splits.row_groups import by_tag


def _group_runs(table: Table) -> np.ndarray:
    return by_tag(table, Tag.BLOCK)


larger_model_1b_40_percent = share_of(larger_model_1b, 40, _group_runs)
larger_model_1b_70_percent = share_of(larger_model_1b, 70, _group_runs)
larger_model_2b_40_percent = share_of(larger_model_2b, 40, _group_runs)
larger_model_2b_70_percent = share_of(larger_model_2b, 70, _group_runs)
