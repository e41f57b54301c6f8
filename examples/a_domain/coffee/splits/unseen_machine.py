"""Split of espresso machines that training does not have."""

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_entities
from perfcast.splits.declaration import declare_split
from perfcast.splits.row_groups import balanced_folds, by_tag
from perfcast.splits.subsets import as_frame, assigned, by_key, draw_validation


@declare_split("unseen espresso machines", "cups of machines without a cup in the training data", check_entities)
def unseen_machine(table: Table, seed: int) -> pd.DataFrame:
    """Test on the cups of machines that nobody has measured: three folds by machine."""
    ordered, rng = by_key(table), np.random.default_rng(seed)
    machines = by_tag(ordered, Tag.ENTITY)
    dealt = balanced_folds(machines, 3, rng)
    tests = [dealt == fold for fold in range(3)]
    return as_frame(table, ordered, [assigned(test, draw_validation(machines, test, rng)) for test in tests])
