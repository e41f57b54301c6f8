"""Distances within groups of many columns: the same numbers, from fewer references."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.schema.table import Column, Kind, Role
from perfcast.uncertainty import in_domain
from perfcast.uncertainty.in_domain import InDomainModel

COLUMNS = [Column(f"metric {number}", Kind.NUMERICAL, Role.FEATURE, "metrics") for number in range(12)]
COLUMNS.append(Column("placement", Kind.CATEGORICAL, Role.FEATURE, "metrics"))


def rows(count: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    numbers = np.where(random.random((count, 12)) < 0.1, np.nan, random.normal(size=(count, 12)))
    frame = pd.DataFrame(numbers, columns=[column.name for column in COLUMNS[:-1]])
    return frame.assign(placement=random.choice(["one", "two"], count))


def test_a_wide_group_has_the_distances_of_a_narrow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    training, tested = rows(80, 0), pd.concat([rows(20, 1), rows(80, 0).head(5)])
    narrow = InDomainModel().fit(training, COLUMNS).distances(tested)
    monkeypatch.setattr(in_domain, "_WIDE", 4)
    wide = InDomainModel().fit(training, COLUMNS).distances(tested)
    pd.testing.assert_frame_equal(narrow, wide, rtol=1e-12)
    assert (wide["metrics"].tail(5) == 0).all()
