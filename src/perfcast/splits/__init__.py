"""The questions of the protocol: which rows a predictor learns from, and which it is asked about.

A split is a function `name(table, seed) -> frame` declared by `audited_by`: one column per fold (fold_0 ..), with the
values train, valid (training rows set aside for choices), test and unused; index as `table.frame`. The order of the
rows has no influence. To add a split, add a function; to change one, raise VERSION: results of two versions never
share a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from perfcast.errors import UserError, unknown_name
from perfcast.schema import Table, Tag
from perfcast.splits._audit import (
    Audit,
    audited_by,
    duplicates_together,
    entities_apart,
    in_window,
    leaking_on_purpose,
    revealed,
)
from perfcast.splits._groups import balanced_folds, by_features, by_tag, connected, draw

VERSION = 1

TEST_SHARE = 0.20
VALID_SHARE = 0.12
UNSEEN_FOLDS = 5
VALID_MONTHS = 12
LAST_SHARE = 0.20
PUBLISHED_PART = "published_part"
"""Provenance column that says, for a data set published with a split of its own, which part a row is of."""


def _last_share(table: Table, fold: pd.Series) -> list[str]:
    """Check the fold against the latest month from which on there are `LAST_SHARE` of the rows, counted anew."""
    time = table.frame[table.one(Tag.TIME)]
    months = time.dropna().dt.to_period("M")
    since = months.value_counts().sort_index(ascending=False).cumsum()
    start = str(since[since >= LAST_SHARE * len(months)].index.max())
    return in_window(start, "2200-01")(table, fold)


@leaking_on_purpose
def shuffled(table: Table, seed: int) -> pd.DataFrame:
    """Ask about rows drawn one by one, 80 % training and 20 % test: for comparison with published figures only.

    It leaks on purpose: most test rows have a sibling in training, of the same submission or with the same features,
    so its errors measure memory and say nothing about a machine that nobody has measured. Papers that shuffle their
    rows are reproduced with it, and with nothing else. 12 % of the training rows are valid.
    Source: Tousi and Luján, IEEE Access, 2022.
    """
    ordered = _ordered(table)
    rows = np.arange(len(ordered.frame))
    rng = np.random.default_rng(seed)
    test = draw(rows, TEST_SHARE, rng)
    return _frame(table, ordered, [_parts(test, _draw_valid(rows, test, rng))])


@audited_by(duplicates_together)
def random(table: Table, seed: int) -> pd.DataFrame:
    """Ask about machines much like known ones: 80 % training, 20 % test, drawn by group.

    A group is what shares a block or every feature, over any number of steps. 12 % of training are valid.
    """
    ordered = _ordered(table)
    groups = connected(by_tag(ordered, Tag.BLOCK), by_features(ordered))
    rng = np.random.default_rng(seed)
    test = draw(groups, TEST_SHARE, rng)
    return _frame(table, ordered, [_parts(test, _draw_valid(groups, test, rng))])


@audited_by(entities_apart)
def unseen_cpu(table: Table, seed: int) -> pd.DataFrame:
    """Ask about processors nobody has measured: five folds by entity."""
    return _unseen(table, seed)


@audited_by(entities_apart)
def unseen_shape(table: Table, seed: int) -> pd.DataFrame:
    """Ask about problem shapes nobody has measured: five folds by entity."""
    return _unseen(table, seed)


@audited_by(in_window("2010-01", "2012-01"))
def forward_2010(table: Table, seed: int) -> pd.DataFrame:
    """Ask about the next generations: train before 2010-01, test from then to 2011-12."""
    del seed
    return _forward(table, "2010-01", "2012-01")


@audited_by(in_window("2012-01", "2015-01"))
def forward_2012(table: Table, seed: int) -> pd.DataFrame:
    """Ask about the next generations: train before 2012-01, test from then to 2014-12."""
    del seed
    return _forward(table, "2012-01", "2015-01")


@audited_by(in_window("2021-01", "2024-01"))
def forward_2021(table: Table, seed: int) -> pd.DataFrame:
    """Ask about the next generation where data end in 2023: train before 2021-01, test from then to 2023-12."""
    del seed
    return _forward(table, "2021-01", "2024-01")


@audited_by(in_window("2023-01", "2025-01"))
def forward_2023(table: Table, seed: int) -> pd.DataFrame:
    """Ask about the next generation: train before 2023-01, test from then to 2024-12."""
    del seed
    return _forward(table, "2023-01", "2025-01")


@audited_by(in_window("2024-01", "2025-01"))
def forward_2024(table: Table, seed: int) -> pd.DataFrame:
    """Ask about the next year: train before 2024-01, test on 2024."""
    del seed
    return _forward(table, "2024-01", "2025-01")


@audited_by(revealed("2023-01", 1))
def few_shot_1(table: Table, seed: int) -> pd.DataFrame:
    """Ask as forward_2023 does, with one measured result of every new entity revealed."""
    return _few_shot(forward_2023(table, seed), table, 1, seed)


@audited_by(revealed("2023-01", 3))
def few_shot_3(table: Table, seed: int) -> pd.DataFrame:
    """Ask as forward_2023 does, with three measured results of every new entity revealed, in any task."""
    return _few_shot(forward_2023(table, seed), table, 3, seed)


@audited_by(revealed("2023-01", 5))
def few_shot_5(table: Table, seed: int) -> pd.DataFrame:
    """Ask as forward_2023 does, with five measured results of every new entity revealed, in any task."""
    return _few_shot(forward_2023(table, seed), table, 5, seed)


@audited_by(_last_share)
def forward_last(table: Table, seed: int) -> pd.DataFrame:
    """Ask about the last fifth: test from the latest month on that has 20 % of the rows at or after it, train before.

    Raises: UserError when no row has a date.
    """
    del seed
    ordered = _ordered(table)
    time = ordered.frame[ordered.one(Tag.TIME)].dropna().sort_values(ignore_index=True)
    if time.empty:
        raise UserError("the split 'forward_last' needs dates", f"{table.dataset!r} has none", "choose another split")
    start = time.iloc[len(time) - int(np.ceil(LAST_SHARE * len(time)))].to_period("M")
    return _forward(table, str(start), str(time.iloc[-1].to_period("M") + 1))


@audited_by()
def published(table: Table, seed: int) -> pd.DataFrame:
    """Ask what the data set's own authors asked: their training and test parts; other rows are unused.

    12 % of the training rows, by block, are valid where training has two blocks or more.
    Raises: UserError when the data set was published without a split.
    """
    if PUBLISHED_PART not in table.frame:
        raise UserError(
            "the split 'published' needs a data set with a split of its own",
            f"{table.dataset!r} has no column {PUBLISHED_PART!r}",
            "choose another split",
        )
    ordered = _ordered(table)
    part = ordered.frame[PUBLISHED_PART]
    train, test = (part == "train").to_numpy(), (part == "test").to_numpy()
    blocks = by_tag(ordered, Tag.BLOCK)
    valid = _draw_valid(blocks, ~train, np.random.default_rng(seed))
    return _frame(table, ordered, [_without_leaks(_parts(test, valid, ~(train | test)), blocks)])


def names() -> list[str]:
    """List the splits by name."""
    return sorted(name for name, value in globals().items() if hasattr(value, "audits"))


def is_question(name: str) -> bool:
    """Whether errors on a split count when predictors are compared: not where it leaks, beside others' figures only.

    A name that is no split, as of a result made by an older version, is taken for a question.
    """
    return bool(getattr(globals().get(name), "question", True))


def make(name: str, table: Table, seed: int) -> pd.DataFrame:
    """Make a split and audit it.

    Raises: UserError when the name is unknown, or the table leaves training or test of a fold empty; ValueError when
    the folds leak, which is an error of the split.
    """
    folds: pd.DataFrame = _function(name)(table, seed)
    for fold in folds:
        for part in ("train", "test"):
            if not (folds[fold] == part).any():
                raise UserError(
                    f"the split {name!r} must leave rows for training and test",
                    f"{fold} of {table.dataset!r} ({len(folds)} rows) has no {part} rows",
                    "choose another split or more data",
                )
    found = leaks(table, folds, name)
    if found:
        raise ValueError(f"split {name!r} of {table.dataset!r} leaks: {'; '.join(found)}")
    return folds


def leaks(table: Table, folds: pd.DataFrame, name: str) -> list[str]:
    """Audit folds against the rules of the split: one sentence per violation, none when all is well.

    Shapes: `folds` as a split returns it. Raises: UserError when the name is unknown.
    """
    audits: Sequence[Audit] = vars(_function(name))["audits"]
    if not folds.index.equals(table.frame.index):
        return ["the folds' index is not the table's"]
    found = [f"{fold}: {problem}" for fold in folds for audit in audits for problem in audit(table, folds[fold])]
    repeated = int(((folds == "test").sum(axis=1) > 1).sum())
    return [*found, f"{repeated} rows are test in more than one fold"] if repeated else found


def _function(name: str) -> Callable[[Table, int], pd.DataFrame]:
    known = names()
    if name not in known:
        raise unknown_name("a split", name, known)
    function: Callable[[Table, int], pd.DataFrame] = globals()[name]
    return function


def _unseen(table: Table, seed: int) -> pd.DataFrame:
    ordered = _ordered(table)
    entities, blocks = by_tag(ordered, Tag.ENTITY), by_tag(ordered, Tag.BLOCK)
    rng = np.random.default_rng(seed)
    dealt = balanced_folds(entities, UNSEEN_FOLDS, rng)
    folds = []
    for fold in range(UNSEEN_FOLDS):
        test = dealt == fold
        folds.append(_without_leaks(_parts(test, _draw_valid(entities, test, rng)), blocks))
    return _frame(table, ordered, folds)


def _forward(table: Table, start: str, end: str) -> pd.DataFrame:
    """Train before `start`, test until before `end`; valid are the last twelve months that have training rows.

    A training row of a block that also has test rows is unused. A test row whose exact features were measured before
    `start` stays in test: whoever asks about the future knows those results.
    """
    ordered = _ordered(table)
    time = ordered.frame[ordered.one(Tag.TIME)]
    train = (time < pd.Timestamp(start)).to_numpy()
    test = ((time >= pd.Timestamp(start)) & (time < pd.Timestamp(end))).to_numpy()
    blocks = by_tag(ordered, Tag.BLOCK)
    train = train & ~np.isin(blocks, blocks[test])
    valid = train & (time > time[train].max() - pd.DateOffset(months=VALID_MONTHS)).to_numpy()
    return _frame(table, ordered, [_parts(test, valid, ~(train | test))])


def _few_shot(folds: pd.DataFrame, table: Table, shots: int, seed: int) -> pd.DataFrame:
    """Move at most `shots` test rows of every entity without training rows to train, drawn at random.

    Other test rows of a revealed row's block are unused: they would be known from it. An entity whose rows are all of
    one block keeps none in test when it is revealed.
    """
    ordered = _ordered(table)
    parts = folds["fold_0"].loc[ordered.frame.index].to_numpy(dtype=object)
    entities, blocks = by_tag(ordered, Tag.ENTITY), by_tag(ordered, Tag.BLOCK)
    new = (parts == "test") & ~np.isin(entities, entities[np.isin(parts, ["train", "valid"])])
    drawn = np.random.default_rng(seed).permutation(np.flatnonzero(new))
    rank = pd.Series(entities[drawn]).groupby(entities[drawn]).cumcount().to_numpy()
    shown = drawn[rank < shots]
    parts[(parts == "test") & np.isin(blocks, blocks[shown])] = "unused"
    parts[shown] = "train"
    return _frame(table, ordered, [parts])


def _ordered(table: Table) -> Table:
    """Sort by the key of the rows, so that random draws do not depend on the order in which rows arrive."""
    return Table(table.dataset, table.frame.sort_values(table.one(Tag.ROW)), table.columns, table.facts)


def _frame(table: Table, ordered: Table, folds: list[np.ndarray]) -> pd.DataFrame:
    parts = {f"fold_{number}": pd.Series(fold, dtype="str") for number, fold in enumerate(folds)}
    return pd.DataFrame(parts).set_axis(ordered.frame.index, axis=0).loc[table.frame.index]


def _parts(test: np.ndarray, valid: np.ndarray, unused: np.ndarray | None = None) -> np.ndarray:
    parts = np.where(test, "test", np.where(valid, "valid", "train"))
    return parts if unused is None else np.where(unused, "unused", parts)


def _without_leaks(parts: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Set training rows aside whose block also has test rows."""
    known = np.isin(blocks, blocks[parts == "test"]) & (parts != "test")
    return np.where(known, "unused", parts)


def _draw_valid(groups: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the valid rows by group among the rows that are not `other`; none where these are of one group."""
    valid = np.zeros(len(groups), dtype=bool)
    inner = pd.factorize(groups[~other])[0]
    if len(inner) and inner.max() > 0:
        valid[~other] = draw(inner, VALID_SHARE, rng)
    return valid
