"""Questions about rows drawn at random, one by one or with what belongs together."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema import Table, Tag
from perfcast.splits._audit import audited_by, duplicates_together, leaking_on_purpose
from perfcast.splits._groups import by_features, by_tag, connected, draw
from perfcast.splits._parts import TEST_SHARE, as_frame, assigned, by_key, draw_valid


@leaking_on_purpose
def shuffled(table: Table, seed: int) -> pd.DataFrame:
    """Ask about rows drawn one by one, 80 % training and 20 % test: for comparison with published figures only.

    It leaks on purpose: most test rows have a sibling in training, of the same submission or with the same features,
    so its errors measure memory and say nothing about a machine that nobody has measured. Papers that shuffle their
    rows are reproduced with it, and with nothing else. 12 % of the training rows are valid.
    Source: Tousi and Luján, IEEE Access, 2022.
    """
    ordered = by_key(table)
    rows = np.arange(len(ordered.frame))
    rng = np.random.default_rng(seed)
    test = draw(rows, TEST_SHARE, rng)
    return as_frame(table, ordered, [assigned(test, draw_valid(rows, test, rng))])


@audited_by(duplicates_together)
def random(table: Table, seed: int) -> pd.DataFrame:
    """Ask about machines much like known ones: 80 % training, 20 % test, drawn by group.

    A group is what shares a block or every feature, over any number of steps. 12 % of training are valid.
    """
    ordered = by_key(table)
    groups = look_alikes(ordered)
    rng = np.random.default_rng(seed)
    test = draw(groups, TEST_SHARE, rng)
    return as_frame(table, ordered, [assigned(test, draw_valid(groups, test, rng))])


def look_alikes(table: Table) -> np.ndarray:
    """Group the rows that `random` keeps together: linked, over any number of steps, by a block or every feature."""
    return connected(by_tag(table, Tag.BLOCK), by_features(table))
