"""Splits of training runs: larger models, longer training and more compute than any run in training has.

Validation rows extrapolate as the test rows do: they are the runs of the largest size, length or compute of training.
Rows that the authors of a dataset predict themselves (`published_subset` is test) are test rows of the published splits
only. The repetition of a run is neither in training nor in test while its twin is tested.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import Check, check_values
from perfcast.splits.declaration import Split, declare_split
from perfcast.splits.row_groups import balanced_folds, by_tag, by_values
from perfcast.splits.subsets import (
    PUBLISHED_SUBSET,
    as_frame,
    assigned,
    by_key,
    draw_validation,
    without_leaks,
)
from perfcast.utils.errors import UserError

PARAMS = "params"
TOKENS = "tokens"
COMPUTE = "compute"
TRAINING_SET = "training_set"
"""Columns that the splits compare."""
LENGTH = "tokens_per_param"
"""Quantity that is the ratio of two columns."""
LONG_TOKENS_PER_PARAM = 90.0
"""Tokens per parameter above which training is long: between the multiples 4 and 5 of 20."""
TEST_SHARE = 0.20
COMPUTE_RATIO = 300.0
"""Compute of a test run over that of each training run. Source: Gadre et al., 2024, arXiv 2403.08540."""
MAX_TARGETS = 10
LARGE_PARAMS = 1e9
_VALIDATION_SHARE = 0.25
"""Share of the training runs with the most compute that validate."""


def _above(name: str, bound: float) -> Check:
    """Return the check that test rows have more of a quantity than a limit, and training rows do not."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        is_over = _quantity(table, name) > bound
        learned = is_over & fold.isin(["train", "validation"])
        tested = ~is_over & (fold == "test")
        wrong = int(learned.sum()) + int(tested.sum())
        return [f"{wrong} rows on the wrong side of {bound:g} {name}"] if wrong else []

    return check


def _extrapolates(name: str, outer: str, *inner: str) -> Check:
    """Return the check that the rows of a subset have more of a quantity than every row of others."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        values = _quantity(table, name)
        wrong = int((values[fold.isin(inner)] >= values[fold == outer].min()).sum())
        return [f"{wrong} {' or '.join(inner)} rows with as much {name} as a {outer} row"] if wrong else []

    return check


def _twins_apart(table: Table, fold: pd.Series) -> list[str]:
    """Check that no repetition of a tested configuration is in training."""
    names = table.select(tag=Tag.CONFIG)
    if not names:
        return []
    keys = table.frame[names].astype("str").agg("\x1f".join, axis=1)
    both = set(keys[fold == "test"]) & set(keys[fold.isin(["train", "validation"])])
    return [f"{len(both)} configurations both in training and in test"] if both else []


def _far_below(table: Table, fold: pd.Series) -> list[str]:
    """Check that training has at most a 300th of the compute of test, and the training set of test."""
    compute = _quantity(table, COMPUTE)
    learned = fold.isin(["train", "validation"])
    tested = fold == "test"
    # a thousandth for the rounding of the products
    problems = []
    close = int((compute[learned] * COMPUTE_RATIO > compute[tested].min() * 1.001).sum())
    if close:
        problems.append(f"{close} training rows with more than 1/{COMPUTE_RATIO:g} of the compute")
    sets = table.frame[TRAINING_SET].astype("str")
    other = set(sets[learned]) - set(sets[tested])
    if other:
        problems.append(f"training sets {', '.join(sorted(other))} of no test row")
    return problems


def larger_than(params: float, label: str) -> Split:
    """Return the split that tests on models of more than `params` parameters, with all smaller ones in training."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        del seed
        ordered, values = _ordered(table, PARAMS)
        test = values > params
        return _one_fold(table, ordered, test, _top_value(values, ~test & ~_reserved(ordered)))

    make.__name__ = f"larger_model_{label.lower()}"
    description = f"models of more than {label} parameters, trained on smaller ones"
    checks = (_above(PARAMS, params), _extrapolates(PARAMS, "validation", "train"), _twins_apart)
    return declare_split(f"larger than {label}", description, *checks)(make)


larger_model_1b = larger_than(1e9, "1B")
larger_model_2b = larger_than(2e9, "2B")


@declare_split(
    "longer training",
    f"runs of more than {LONG_TOKENS_PER_PARAM:g} tokens per parameter, trained on shorter ones",
    _above(LENGTH, LONG_TOKENS_PER_PARAM),
    _twins_apart,
)
def longer_training(table: Table, seed: int) -> pd.DataFrame:
    """Test on runs of many tokens per parameter, of all sizes; the longest of the other runs validate."""
    del seed
    ordered, values = _ordered(table, LENGTH)
    test = values > LONG_TOKENS_PER_PARAM
    # the lengths of one multiple differ a little between sizes
    return _one_fold(
        table,
        ordered,
        test,
        _top_value(np.round(np.log2(values)), ~test & ~_reserved(ordered)),
    )


@declare_split(
    "most compute",
    "the fifth of the runs with the most compute, trained on all smaller ones",
    _extrapolates(COMPUTE, "test", "train", "validation"),
    _twins_apart,
)
def largest_compute(table: Table, seed: int) -> pd.DataFrame:
    """Test on the fifth of the runs with the most compute."""
    del seed
    ordered, values = _ordered(table, COMPUTE)
    usable = ~_reserved(ordered)
    test = usable & (values >= _upper_quantile(ordered, values, usable, TEST_SHARE))
    others = usable & ~test
    validation = others & (values >= _upper_quantile(ordered, values, others, _VALIDATION_SHARE))
    return _one_fold(table, ordered, test, validation)


@declare_split(
    "300 times the compute",
    f"models of more than {LARGE_PARAMS / 1e9:g}B parameters, from a 300th of the compute and the same training set",
    _far_below,
    _twins_apart,
)
def compute_300x(table: Table, seed: int) -> pd.DataFrame:
    """Test on one large model per fold, with only runs of its training set of at most a 300th of its compute.

    Models without four such runs are not tested; at most ten are. The training runs of most compute validate.
    Raises: UserError when no model is left.
    """
    del seed
    ordered, compute = _ordered(table, COMPUTE, PARAMS, TRAINING_SET)
    params = ordered.frame[PARAMS].to_numpy()
    sets = by_values(ordered.frame, [TRAINING_SET])
    blocks = by_tag(ordered, Tag.BLOCK)
    folds: list[np.ndarray] = []
    for block in np.unique(blocks[params > LARGE_PARAMS]):
        test = blocks == block
        first = int(np.flatnonzero(test)[0])
        small = (sets == sets[first]) & (compute * COMPUTE_RATIO <= compute[first])
        if len(np.unique(blocks[small])) < 4 or len(folds) == MAX_TARGETS:
            continue
        validation = small & (compute >= _upper_quantile(ordered, compute, small, _VALIDATION_SHARE))
        folds.append(without_leaks(assigned(test, validation, ~(test | small)), blocks))
    if not folds:
        raise UserError(
            "the split 'compute_300x' needs a model with four runs of a 300th of its compute",
            f"{table.dataset!r} has none",
            "choose another split",
        )
    return as_frame(table, ordered, folds)


@declare_split(
    "unseen training sets",
    "training sets without a run in training",
    check_values(TRAINING_SET),
)
def unseen_training_set(table: Table, seed: int) -> pd.DataFrame:
    """Test on training sets that no run in training has: one fold per set, at most ten."""
    ordered = by_key(table, COMPUTE, TRAINING_SET)
    sets = by_values(ordered.frame, [TRAINING_SET])
    rng = np.random.default_rng(seed)
    dealt = balanced_folds(sets, min(MAX_TARGETS, len(np.unique(sets))), rng)
    blocks = by_tag(ordered, Tag.BLOCK)
    folds = []
    for fold in np.unique(dealt):
        test = dealt == fold
        others = np.unique(sets[~test])
        validation = np.zeros(len(test), dtype=bool)
        if len(others) > 1:
            validation = (sets == rng.choice(others)) & ~test
        if not validation.any():
            validation = draw_validation(blocks, test, rng)
        folds.append(without_leaks(assigned(test, validation), blocks))
    return as_frame(table, ordered, folds)


@declare_split(
    "published split, all runs",
    "the test rows of the dataset's authors, trained on all other runs",
)
def published_more(table: Table, seed: int) -> pd.DataFrame:
    """Use the test rows of the dataset's authors, and all other rows as training; the largest size validates.

    Raises: UserError when the dataset was published without a split.
    """
    del seed
    ordered, values = _ordered(table, PARAMS, PUBLISHED_SUBSET)
    test = ordered.frame[PUBLISHED_SUBSET].eq("test").to_numpy()
    return _one_fold(table, ordered, test, _top_value(values, ~test), reserve=False)


def _ordered(table: Table, name: str, *others: str) -> tuple[Table, np.ndarray]:
    """Return the table in the order of its keys, and a quantity of its rows; `others` are columns that it must have."""
    columns = (PARAMS, TOKENS) if name == LENGTH else (name,)
    ordered = by_key(table, *columns, *others)
    return ordered, _quantity(ordered, name).to_numpy()


def _quantity(table: Table, name: str) -> pd.Series:
    if name == LENGTH:
        return table.frame[TOKENS] / table.frame[PARAMS]
    return table.frame[name]


def _reserved(table: Table) -> np.ndarray:
    """Mark the rows that the authors of the dataset predict."""
    if PUBLISHED_SUBSET not in table.frame:
        return np.zeros(len(table.frame), dtype=bool)
    return table.frame[PUBLISHED_SUBSET].eq("test").to_numpy()


def _top_value(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Mark the rows that have the largest value of those `among`; none where all have the same."""
    chosen = values[among]
    if not len(chosen) or chosen.min() == chosen.max():
        return np.zeros(len(values), dtype=bool)
    return np.asarray(among & (values == chosen.max()))


def _upper_quantile(table: Table, values: np.ndarray, among: np.ndarray, share: float) -> float:
    """Return the value from which on there is at least `share` of the runs `among`; infinite without runs."""
    by_run = pd.Series(values[among]).groupby(by_tag(table, Tag.BLOCK)[among])
    runs = by_run.max().sort_values(ascending=False)
    if runs.empty:
        return np.inf
    return float(runs.iloc[int(np.ceil(share * len(runs))) - 1])


def _one_fold(
    table: Table,
    ordered: Table,
    test: np.ndarray,
    validation: np.ndarray,
    *,
    reserve: bool = True,
) -> pd.DataFrame:
    """Return the fold; rows reserved for the published splits, and twins of test rows, are unused."""
    unused = _reserved(ordered) if reserve else np.zeros(len(test), dtype=bool)
    test = test & ~unused
    names = ordered.select(tag=Tag.CONFIG)
    if names:
        twins = by_values(ordered.frame, names)
        blocks = ordered.select(tag=Tag.BLOCK)
        # the name of a repetition follows that of its run
        tested = ordered.frame[blocks].assign(_twin=twins)[test].sort_values(blocks, kind="stable")
        repeated = np.isin(ordered.frame.index, tested.index[tested["_twin"].duplicated()])
        unused = unused | repeated | (~test & np.isin(twins, twins[test]))
    subsets = assigned(test, validation & ~test, unused)
    return as_frame(table, ordered, [without_leaks(subsets, by_tag(ordered, Tag.BLOCK))])
