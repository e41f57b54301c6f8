"""`perfcast tune --also`: values go to another split only where its test rows took no part in the search."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from perfcast.experiment.tuning import check_unseen
from perfcast.utils.errors import UserError

PARTS = ["train", "train", "validation", "test", "test", "unused"]


def folds(*columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame({f"fold_{number}": column for number, column in enumerate(columns)})


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (folds(["train", "validation", "train", "train", "test", "test"]), None),
        (folds(["train", "train", "test", "test", "test", "test"]), "tests on 1 of them"),
        (folds(["test", "train", "train", "train", "test", "validation"]), "tests on 1 of them"),
        (folds(PARTS, PARTS), "has 2 folds of 6 rows"),
        (folds(PARTS[:5]), "has 1 folds of 5 rows"),
        (None, "run snakemake"),
    ],
)
def test_also_refuses_splits_whose_test_rows_took_part_in_tuning(
    tmp_path: Path, other: pd.DataFrame | None, words: str | None
) -> None:
    if other is not None:
        other.to_parquet(tmp_path / "later.parquet")
    check = partial(check_unseen, "later", "forward", tmp_path / "forward.parquet")
    if words is None:
        check(folds(PARTS))
        return
    with pytest.raises(UserError, match=words) as raised:
        check(folds(PARTS))
    assert "\n" not in str(raised.value)
