"""Splits of interference: victims, aggressors, pairs, scenarios and intensities that training does not have.

A run has several tenants, each a victim of the others, and its windows overlap. Runs are the blocks of the dataset, so
no run is on both sides; rows of a run that would be are unused.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_values
from perfcast.splits.declaration import declare_split
from perfcast.splits.row_groups import balanced_folds, by_tag, by_values
from perfcast.splits.subsets import as_frame, assigned, by_key, draw_validation

VICTIM = "victim"
AGGRESSORS = "aggressors"
TENANTS = "tenants"
SCENARIO = "scenario"
INTENSITY = "intensity"
OTHERS = "aggressor_intensity"
"""Columns that the splits read; several workloads in a text are joined by JOIN."""
JOIN = "+"
DYNAMIC = "dynamic"
FULL = 1.0
FOLDS = 5
Pair = tuple[str, str]


def _no_known_tenant(table: Table, fold: pd.Series) -> list[str]:
    """Check that no training run has a victim of the test rows, not even as a neighbor."""
    learned, tested = _sides(table, fold)
    shared = _workloads(learned[TENANTS]) & set(tested[VICTIM].astype(str))
    return [f"{len(shared)} victims of test are tenants of training runs"] if shared else []


def _new_aggressor(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row has a neighbor that no training run has."""
    learned, tested = _sides(table, fold)
    tenants = _workloads(learned[TENANTS])
    wrong = sum(set(text.split(JOIN)) <= tenants for text in tested[AGGRESSORS].astype(str))
    return [f"{wrong} test rows whose neighbors training has"] if wrong else []


def _new_pair(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row has a pair of victim and neighbor that no training run has."""
    learned, tested = _sides(table, fold)
    pairs = {pair for text in learned[TENANTS].astype(str).unique() for pair in _pairs(text)}
    rows = tested[[VICTIM, AGGRESSORS]].astype(str).itertuples(index=False)
    wrong = sum(set(_pairs_of(victim, text)) <= pairs for victim, text in rows)
    return [f"{wrong} test rows whose pairs training has"] if wrong else []


def _static(table: Table, fold: pd.Series) -> list[str]:
    """Check that the test rows are dynamic, and that no training row is."""
    return _on_sides(table.frame[SCENARIO].astype(str) == DYNAMIC, fold, "of the wrong scenario")


def _lower(table: Table, fold: pd.Series) -> list[str]:
    """Check that neighbors run at full intensity in every test row, and in no training row."""
    return _on_sides(table.frame[OTHERS] >= FULL, fold, "on the wrong side of full intensity")


def _on_sides(of_test: pd.Series, fold: pd.Series, what: str) -> list[str]:
    """Return the finding that marked rows train, or others are tested."""
    learned = of_test & fold.isin(["train", "validation"])
    tested = ~of_test & (fold == "test")
    wrong = int(learned.sum()) + int(tested.sum())
    return [f"{wrong} rows {what}"] if wrong else []


@declare_split(
    "unseen victims",
    "workloads without a run in training",
    check_values(VICTIM),
    _no_known_tenant,
)
def unseen_victim(table: Table, seed: int) -> pd.DataFrame:
    """Test on victims that nobody has measured: five folds; runs with one of them do not train."""
    ordered = by_key(table, VICTIM, TENANTS)
    victim = ordered.frame[VICTIM].astype(str).to_numpy()

    def folds(held: set[str]) -> tuple[np.ndarray, np.ndarray]:
        return np.isin(victim, list(held)), _contains(ordered.frame[TENANTS], held)

    return _hold_out(table, ordered, sorted(set(victim)), folds, seed=seed)


@declare_split(
    "unseen aggressors",
    "neighbors that no run of the training data has",
    check_values(AGGRESSORS),
    _new_aggressor,
)
def unseen_aggressor(table: Table, seed: int) -> pd.DataFrame:
    """Test on known victims beside neighbors that nobody has measured: five folds; no run with one of them trains."""
    ordered = by_key(table, VICTIM, TENANTS, AGGRESSORS)
    victim = ordered.frame[VICTIM].astype(str).to_numpy()

    def folds(held: set[str]) -> tuple[np.ndarray, np.ndarray]:
        is_beside = _contains(ordered.frame[AGGRESSORS], held)
        is_victim = np.isin(victim, list(held))
        return is_beside & ~is_victim, _contains(ordered.frame[TENANTS], held)

    primary = []
    for name, others in ordered.frame[[VICTIM, AGGRESSORS]].astype(str).itertuples(index=False):
        neighbors = [other for other in others.split(JOIN) if other]
        primary.append(_pick((name, others), neighbors))
    names = sorted(_workloads(ordered.frame[TENANTS]))
    return _hold_out(table, ordered, names, folds, seed=seed, primary=primary)


@declare_split(
    "unseen pairs",
    "pairs of victim and neighbor that no run of the training data has",
    check_values(TENANTS),
    _new_pair,
)
def unseen_pair(table: Table, seed: int) -> pd.DataFrame:
    """Test on pairs that nobody has measured together: five folds by the CRC-32 of both names."""
    ordered = by_key(table, VICTIM, TENANTS, AGGRESSORS)
    groups = by_values(ordered.frame, [TENANTS])
    rng = np.random.default_rng(seed)
    rows = ordered.frame[[VICTIM, AGGRESSORS]].astype(str).itertuples(index=False)
    fold_of_row = np.array([_pair_fold(victim, aggressors) for victim, aggressors in rows])
    tenants = ordered.frame[TENANTS].astype(str)
    folds_of_run = {text: {_fold(pair) for pair in _pairs(text)} for text in tenants.unique()}
    folds = []
    for fold in range(FOLDS):
        test = fold_of_row == fold
        # rows of a run that has a pair of this fold
        banned = np.array([fold in folds_of_run[text] for text in tenants], dtype=bool)
        if test.any() and not banned.all():
            validation = draw_validation(groups, banned, rng)
            folds.append(assigned(test, validation, banned & ~test))
    return as_frame(table, ordered, folds)


@declare_split("dynamic neighbors", "neighbors that start and stop, trained on static ones", _static)
def static_to_dynamic(table: Table, seed: int) -> pd.DataFrame:
    """Test on runs whose neighbors start and stop at random, trained on the others."""
    ordered = by_key(table, SCENARIO)
    test = (ordered.frame[SCENARIO].astype(str) == DYNAMIC).to_numpy()
    validation = draw_validation(by_tag(ordered, Tag.BLOCK), test, np.random.default_rng(seed))
    return as_frame(table, ordered, [assigned(test, validation)])


@declare_split(
    "higher intensity",
    "tenants at full intensity, trained beside slower neighbors or alone",
    _lower,
)
def low_to_high_intensity(table: Table, seed: int) -> pd.DataFrame:
    """Test on runs at full intensity. Training has the rows of other runs whose neighbors are all slower, or absent."""
    ordered = by_key(table, INTENSITY, OTHERS)
    frame = ordered.frame
    runs = by_tag(ordered, Tag.BLOCK)
    is_fast = (frame[OTHERS] >= FULL).to_numpy()
    has_slow_tenant = ((frame[INTENSITY] < FULL) | (frame[OTHERS] < FULL)).to_numpy()
    is_full_run = ~np.isin(runs, runs[has_slow_tenant]) & np.isin(runs, runs[is_fast])
    test = is_full_run & is_fast
    banned = is_full_run | is_fast
    validation = draw_validation(runs, banned, np.random.default_rng(seed))
    return as_frame(table, ordered, [assigned(test, validation, banned & ~test)])


def _hold_out(
    table: Table,
    ordered: Table,
    names: list[str],
    folds_of: Callable[[set[str]], tuple[np.ndarray, np.ndarray]],
    *,
    seed: int,
    primary: Iterable[str] | None = None,
) -> pd.DataFrame:
    """Hold out every name once; validation holds out further names in the same way.

    `folds_of` returns the rows that test names, and those of runs that must not train. `primary` is the name by whose
    fold a row is tested, where it could be in several.
    """
    rng = np.random.default_rng(seed)
    sizes = [int(folds_of({name})[0].sum()) for name in names]
    fold_of = _deal(names, sizes, rng)
    chosen = None if primary is None else np.array([fold_of.get(name, -1) for name in primary])
    folds = []
    for fold in sorted(set(fold_of.values())):
        held = {name for name in names if fold_of[name] == fold}
        others = [name for name in names if name not in held]
        count = max(1, len(held) // 2)
        inner = set(rng.permutation(others)[:count].tolist())
        test, banned = folds_of(held)
        if chosen is not None:
            test &= chosen == fold
        validation, related = folds_of(inner)
        validation &= ~banned
        unused = (banned & ~test) | (related & ~validation & ~test)
        if (~(test | unused | validation)).any():
            folds.append(assigned(test, validation, unused))
        else:  # too few runs for validation rows
            folds.append(assigned(test, np.zeros_like(test), banned & ~test))
    return as_frame(table, ordered, folds)


def _deal(names: list[str], sizes: list[int], rng: np.random.Generator) -> dict[str, int]:
    """Deal names to folds of nearly equal rows."""
    counts = np.maximum(sizes, 1)
    name_of_row = np.repeat(np.arange(len(names)), counts)
    dealt = balanced_folds(name_of_row, min(FOLDS, len(names)), rng)
    return dict(zip(names, dealt[np.cumsum(counts) - 1].tolist(), strict=True))


def _pick(texts: Iterable[str], choices: list[str]) -> str:
    """Return one of several choices, the same one for the same texts; "" without any."""
    return choices[zlib.crc32(JOIN.join(texts).encode()) % len(choices)] if choices else ""


def _sides(table: Table, fold: pd.Series) -> tuple[pd.DataFrame, pd.DataFrame]:
    return table.frame[fold.isin(["train", "validation"])], table.frame[fold == "test"]


def _workloads(texts: pd.Series) -> set[str]:
    return {name for text in texts.astype(str).unique() for name in text.split(JOIN) if name}


def _contains(texts: pd.Series, held: set[str]) -> np.ndarray:
    has_held = texts.astype(str).map(lambda text: bool(held & set(text.split(JOIN))))
    return has_held.to_numpy(dtype=bool)


def _pairs(tenants: str) -> Iterable[Pair]:
    return combinations(sorted(tenants.split(JOIN)), 2)


def _pairs_of(victim: str, aggressors: str) -> list[Pair]:
    pairs = []
    for other in aggressors.split(JOIN):
        if other:
            first, second = sorted((victim, other))
            pairs.append((first, second))
    return pairs


def _pair_fold(victim: str, aggressors: str) -> int:
    """Return the fold that tests a row: that of one of its pairs; -1 without a neighbor."""
    pairs = [JOIN.join(pair) for pair in _pairs_of(victim, aggressors)]
    picked = _pick((victim, aggressors), pairs)
    if not picked:
        return -1
    return zlib.crc32(picked.encode()) % FOLDS


def _fold(pair: Pair) -> int:
    return zlib.crc32(JOIN.join(pair).encode()) % FOLDS
