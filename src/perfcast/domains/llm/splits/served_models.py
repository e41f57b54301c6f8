"""Splits of served language models: deployments, models, GPUs, generations and loads that training does not have."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_duplicates, check_values
from perfcast.splits.declaration import declare_split
from perfcast.splits.row_groups import (
    balanced_folds,
    by_features,
    by_tag,
    by_values,
    connected,
)
from perfcast.splits.subsets import (
    as_frame,
    assigned,
    by_key,
    draw_validation,
    without_leaks,
)
from perfcast.utils.errors import UserError

DEPLOYMENT = "deployment"
FAMILY = "model_family"
GPU = "gpu"
GENERATION = "generation"
CONCURRENCY = "concurrency"
"""Columns that the splits hold out by."""
GENERATION_YEAR = "generation_year"
MAX_FOLDS = 10
MAX_TRAINED_CONCURRENCY = 64
MIN_DRAWN_GROUPS = 8
"""Of fewer groups a draw of 12 % of the rows would always be the smallest ones."""
MIN_SHARE = 0.05
"""Least share of the rows of a group that validates alone."""


def _lighter(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row has a higher load than the bound, and no training row has."""
    heavy = table.frame[CONCURRENCY] > MAX_TRAINED_CONCURRENCY
    learned = heavy & fold.isin(["train", "validation"])
    tested = ~heavy & (fold == "test")
    wrong = int(learned.sum()) + int(tested.sum())
    return [f"{wrong} rows on the wrong side of {MAX_TRAINED_CONCURRENCY} requests"] if wrong else []


def _older(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row has a newer generation than all training rows."""
    year = _first_years(table.frame)
    newest = year[fold.isin(["train", "validation"])].max()
    known = int((year[fold == "test"] <= newest).sum())
    return [f"{known} test rows of a generation as old as one of training"] if known else []


@declare_split(
    "unseen deployments",
    "deployments without a result at any load in training",
    check_values(DEPLOYMENT),
    check_duplicates,
)
def unseen_deployment(table: Table, seed: int) -> pd.DataFrame:
    """Test on deployments that nobody has measured at any load: five folds."""
    return _held_out(table, DEPLOYMENT, seed, folds=5)


@declare_split("unseen models", "model families without a result in training", check_values(FAMILY))
def unseen_model(table: Table, seed: int) -> pd.DataFrame:
    """Test on model families that nobody has measured: one fold per family."""
    return _held_out(table, FAMILY, seed, folds=MAX_FOLDS)


@declare_split("unseen GPUs", "GPUs without a result in training", check_values(GPU))
def unseen_gpu(table: Table, seed: int) -> pd.DataFrame:
    """Test on GPUs that nobody has measured: one fold per GPU. Its siblings of one generation may be in training."""
    return _held_out(table, GPU, seed, folds=MAX_FOLDS)


@declare_split(
    "next GPU generation",
    "the newest generation of GPUs, trained on older ones",
    _older,
    version=2,
)
def next_generation(table: Table, seed: int) -> pd.DataFrame:
    """Test on the newest generation of GPUs, by the year of its first product; train on all older ones.

    The validation rows are those of one GPU, so that backtests are of a GPU without results too.
    Raises: UserError when the dataset has no generations, or one only.
    """
    ordered = by_key(table, GENERATION)
    year = _first_years(ordered.frame).to_numpy()
    if len(np.unique(year)) < 2:
        raise UserError(
            "the split 'next_generation' needs two generations",
            f"{table.dataset!r} has one",
            "choose another split",
        )
    return _one_fold(table, ordered, year == year.max(), GPU, seed)


@declare_split(
    "larger loads",
    f"more than {MAX_TRAINED_CONCURRENCY} concurrent requests, trained on fewer",
    _lighter,
)
def larger_load(table: Table, seed: int) -> pd.DataFrame:
    """Test on more concurrent requests than any training row has."""
    ordered = by_key(table, CONCURRENCY)
    heavy = (ordered.frame[CONCURRENCY] > MAX_TRAINED_CONCURRENCY).to_numpy()
    return _one_fold(table, ordered, heavy, DEPLOYMENT, seed)


def _held_out(table: Table, name: str, seed: int, *, folds: int) -> pd.DataFrame:
    """Hold out every value of a column once, in at most so many folds; validation rows are of held-out values too."""
    ordered = by_key(table, name)
    groups = by_values(ordered.frame, [name])
    blocks = by_tag(ordered, Tag.BLOCK)
    if name == DEPLOYMENT:
        groups = connected(groups, by_features(ordered))
    rng = np.random.default_rng(seed)
    dealt = balanced_folds(groups, min(folds, len(np.unique(groups))), rng)
    return as_frame(
        table,
        ordered,
        [
            without_leaks(
                assigned(dealt == fold, _draw_validation(groups, dealt == fold, rng)),
                blocks,
            )
            for fold in np.unique(dealt)
        ],
    )


def _draw_validation(groups: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the validation rows by group; of few groups one that has rows enough to measure an error."""
    sizes = np.bincount(groups[~test])
    if not 1 < np.count_nonzero(sizes) < MIN_DRAWN_GROUPS:
        return draw_validation(groups, test, rng)
    return np.asarray((groups == rng.choice(np.flatnonzero(sizes >= MIN_SHARE * sizes.sum()))) & ~test)


def _one_fold(table: Table, ordered: Table, test: np.ndarray, name: str, seed: int) -> pd.DataFrame:
    groups = by_values(ordered.frame, [name])
    blocks = by_tag(ordered, Tag.BLOCK)
    validation = _draw_validation(groups, test, np.random.default_rng(seed))
    return as_frame(table, ordered, [without_leaks(assigned(test, validation), blocks)])


def _first_years(frame: pd.DataFrame) -> pd.Series:
    """Return the year of the first product of every row's generation."""
    return frame.groupby(frame[GENERATION].astype("str"))[GENERATION_YEAR].transform("min")
