"""Splits of accelerators: rounds, accelerators, generations, models, systems, submitters and scales not in training.

A task that training does not have has no level to predict: its rows are unused. Accelerators without facts are trained
on and never tested, but in forward splits.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from perfcast.domains.accelerators.catalog import WITHOUT_FACTS
from perfcast.domains.accelerators.datasets.mlperf_rounds import PUBLISHED
from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import (
    Check,
    check_entities,
    check_subsets,
    check_values,
    check_window,
)
from perfcast.splits.declaration import Split, SplitDeclaration, attach, declare_split
from perfcast.splits.row_groups import by_tag, by_values
from perfcast.splits.subsets import (
    as_frame,
    assigned,
    by_key,
    draw_validation,
    without_leaks,
)
from perfcast.utils.errors import UserError

ROUNDS = {name: day[:7] for name, day in PUBLISHED.items() if name >= "v3.0"}
"""Round -> the month of its publication, of rounds that are predicted from two earlier ones or more."""
FOLDS = 5
MIN_ROWS = 20
MIN_SHOTS = 12
JUDGED_RANK = 10
NODE = 8
_NEEDED = (
    "round",
    "model",
    "scenario",
    "generation",
    "silicon",
    "system",
    "submitter",
    "block",
)
_COPY = ["block", "model", "scenario"]


def check_copies(table: Table, fold: pd.Series) -> list[str]:
    """Check that training has no other accuracy of a tested run: its result is mostly the same."""
    keys = table.frame.groupby(_COPY, dropna=False).ngroup()
    both = set(keys[fold == "test"]) & set(keys[fold.isin(["train", "validation"])])
    return [f"{len(both)} runs under another accuracy in training"] if both else []


def check_tasks(table: Table, fold: pd.Series) -> list[str]:
    """Check that every tested task has a training row, which gives its level."""
    tasks = table.frame[table.column_of(Tag.TASK)]
    unknown = set(tasks[fold == "test"]) - set(tasks[fold.isin(["train", "validation"])])
    return [f"tested tasks without a training row: {', '.join(sorted(unknown))}"] if unknown else []


def check_earlier(shots: int) -> Check:
    """Return the check that training is of earlier rounds than test, but for `shots` of each tested accelerator."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        of_round, entity = (table.frame[name].astype(str) for name in ("round", table.column_of(Tag.ENTITY)))
        tested = fold == "test"
        learned = fold.isin(["train", "validation"])
        late = learned & (of_round >= of_round[tested].min())
        known = learned & entity.isin(entity[tested])
        others = int((late & ~known).sum())
        earlier = int((known & ~late).sum())
        problems = [f"{others} training rows of a tested round"] if others else []
        problems += [f"{earlier} earlier rows of a new accelerator"] if earlier else []
        many = entity[known].value_counts().gt(shots).sum()
        return problems + ([f"{many} new accelerators with more than {shots} known results"] if many else [])

    return check


def check_count(most: int) -> Check:
    """Return the check that training has at most so many accelerators and test more."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        large = table.frame[table.column_of(Tag.PARALLEL)] > most
        learned = large & fold.isin(["train", "validation"])
        tested = ~large & (fold == "test")
        wrong = int(learned.sum() + tested.sum())
        return [f"{wrong} rows on the wrong side of {most} accelerators"] if wrong else []

    return check


def forward(name: str, month: str) -> Split:
    """Return the split that tests on a round and trains on all earlier ones; the last of them validates."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        del seed
        ordered = _ordered(table)
        return as_frame(table, ordered, [_known_tasks(ordered, _round_fold(ordered, name))])

    end = next((later for later in ROUNDS.values() if later > month), "2200-01")
    description = f"results of round {name}, trained on all earlier rounds"
    checks = (check_window(month, end), check_tasks, check_copies)
    return declare_split(f"round {name}", description, *checks, scenario="the next round", since=month)(make)


forward_v3_1 = forward("v3.1", ROUNDS["v3.1"])
forward_v4_0 = forward("v4.0", ROUNDS["v4.0"])
forward_v4_1 = forward("v4.1", ROUNDS["v4.1"])
forward_v5_0 = forward("v5.0", ROUNDS["v5.0"])
forward_v5_1 = forward("v5.1", ROUNDS["v5.1"])


def new_in_round(shots: int) -> Split:
    """Return the split of accelerators that no earlier round has, with `shots` of their results known, by round.

    The known results are those of the smallest checksum of their id, and the rows after the tenth are tested but those
    of a known run. They may be of a tested system: someone who knows results of an accelerator has them.
    """

    def make(table: Table, seed: int) -> pd.DataFrame:
        del seed
        ordered = _ordered(table)
        frame = ordered.frame
        order = pd.Series(_checksums(frame[ordered.column_of(Tag.ROW)]))
        entities = pd.Series(by_tag(ordered, Tag.ENTITY))
        folds = []
        for name in ROUNDS:
            fold = _round_fold(ordered, name)
            known = entities.isin(entities[np.isin(fold, ["train", "validation"])])
            new = (fold == "test") & ~known.to_numpy() & _has_facts(frame).to_numpy()
            fold[(fold == "test") & ~new] = "unused"
            if shots:
                ranks = order.where(new).groupby(entities).rank(method="first")
                many = (pd.Series(new).groupby(entities).transform("sum") > MIN_SHOTS).to_numpy() & new
                fold[new] = "unused"
                fold[many & (ranks > JUDGED_RANK).to_numpy()] = "test"
                fold[many & (ranks <= shots).to_numpy()] = "train"
                copies = by_values(frame, _COPY)
                fold[(fold == "test") & np.isin(copies, copies[new & (fold == "train")])] = "unused"
            fold = _known_tasks(ordered, fold)
            if (fold == "test").any():
                folds.append(fold)
        return as_frame(table, ordered, folds)

    if not shots:
        description = "accelerators in their first round, trained on the rounds before"
        return declare_split("new accelerators", description, check_earlier(0), check_tasks)(make)
    known = f"{shots} result{'s' if shots > 1 else ''} known"
    checks = (check_subsets, check_earlier(shots), check_tasks, check_copies)
    return attach(
        SplitDeclaration(
            f"new accelerators, {known}",
            f"accelerators in their first round, {known}",
            checks,
        )
    )(make)


new_accelerator = new_in_round(0)
known_1_of_new = new_in_round(1)
known_3_of_new = new_in_round(3)
known_10_of_new = new_in_round(10)


def _frequent(values: pd.Series) -> list[list[str]]:
    sizes = values.value_counts().sort_index()
    return [[str(name)] for name in sizes.index[sizes >= MIN_ROWS]]


def _fifths(values: pd.Series) -> list[list[str]]:
    names = np.sort(values.unique())
    parts = _checksums(pd.Series(names)) % FOLDS
    return [list(names[parts == part]) for part in range(FOLDS)]


def hold_out(
    label: str,
    column: str,
    check: Check,
    groups: Callable[[pd.Series], list[list[str]]] = _frequent,
) -> Split:
    """Return the split that tests each group of values of a column, or of the entity, without a row in training."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        ordered = _ordered(table)
        frame = ordered.frame
        rng = np.random.default_rng(seed)
        name = column or ordered.column_of(Tag.ENTITY)
        usable = _has_facts(frame)
        values = by_values(frame, [name])
        blocks = by_tag(ordered, Tag.BLOCK)
        folds = []
        for group in groups(frame.loc[usable, name].dropna()):
            out = frame[name].isin(set(group)).to_numpy()
            fold = without_leaks(assigned(out, draw_validation(values, out, rng)), blocks)
            fold[out & ~usable.to_numpy()] = "unused"
            fold = _known_tasks(ordered, fold)
            if (fold == "test").any():
                folds.append(fold)
        return as_frame(table, ordered, folds)

    description = f"{label.removeprefix('unseen ')} without a result in training"
    return declare_split(label, description, check, check_tasks, check_copies)(make)


unseen_accelerator = hold_out("unseen accelerators", "", check_entities)
unseen_silicon = hold_out("unseen silicon", "silicon", check_values("silicon"))
unseen_system = hold_out("unseen machines", "system", check_values("system"), _fifths)
unseen_submitter = hold_out("unseen submitters", "submitter", check_values("submitter"), _fifths)


def _one_level(table: Table, fold: pd.Series) -> list[str]:
    """Check that training has one accelerator of a tested task."""
    tasks = table.frame[table.column_of(Tag.TASK)].astype(str)
    entities = table.frame[table.column_of(Tag.ENTITY)].astype(str)
    known = tasks.isin(tasks[fold == "test"]) & fold.isin(["train", "validation"])
    counts = entities[known].groupby(tasks[known]).nunique()
    return [f"{name}: {count} accelerators known" for name, count in counts.items() if count != 1]


@attach(
    SplitDeclaration(
        "models on one",
        "models of which training has one accelerator",
        (check_subsets, _one_level, check_tasks),
    )
)
def model_on_one(table: Table, seed: int) -> pd.DataFrame:
    """Test on every model once; training has its most frequent accelerator, which gives the level of each task.

    Rows of other models of the same system are in training: they are what the prediction comes from.
    """
    ordered = _ordered(table)
    frame = ordered.frame
    rng = np.random.default_rng(seed)
    tasks = frame[ordered.column_of(Tag.TASK)]
    entities = frame[ordered.column_of(Tag.ENTITY)]
    folds = []
    for model in np.sort(frame["model"].unique()):
        out = (frame["model"] == model).to_numpy()
        first = entities[out].groupby(tasks[out]).agg(lambda names: names.value_counts().sort_index().idxmax())
        level = out & (entities == tasks.map(first)).to_numpy()
        test = out & ~level & _has_facts(frame).to_numpy()
        validation = draw_validation(by_values(frame, ["model"]), out, rng) & ~out
        folds.append(_known_tasks(ordered, assigned(test, validation, out & ~level & ~test)))
    return as_frame(table, ordered, [fold for fold in folds if (fold == "test").any()])


def more_than(most: int, label: str) -> Split:
    """Return the split that tests on more accelerators than `most`, trained on fewer."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        ordered = _ordered(table)
        test = (ordered.frame[ordered.column_of(Tag.PARALLEL)] > most).to_numpy()
        blocks = by_tag(ordered, Tag.BLOCK)
        validation = draw_validation(blocks, test, np.random.default_rng(seed))
        fold = without_leaks(assigned(test & _has_facts(ordered.frame).to_numpy(), validation), blocks)
        fold[test & (fold != "test")] = "unused"
        return as_frame(table, ordered, [_known_tasks(ordered, fold)])

    description = f"more than {most} accelerators, trained on fewer"
    return declare_split(label, description, check_count(most), check_tasks)(make)


more_than_node = more_than(NODE, "more than a node")
node_from_fewer = more_than(NODE - 1, "a node from fewer")


def _ordered(table: Table) -> Table:
    """Return the table in the order of its keys. Raises: UserError without the columns that the splits read."""
    missing = [name for name in _NEEDED if name not in table.frame]
    if missing:
        fact = f"{table.dataset!r} has no {', '.join(missing)}"
        raise UserError("splits of accelerators need a dataset of rounds", fact, "choose another split")
    ordered = by_key(table)
    texts = [*_NEEDED, *(table.column_of(tag) for tag in (Tag.TASK, Tag.ENTITY))]
    return replace(ordered, frame=ordered.frame.astype(dict.fromkeys(texts, "object")))


def _round_fold(ordered: Table, name: str) -> np.ndarray:
    """Return a round as test and all earlier ones as training, the last of which validates."""
    names = ordered.frame["round"]
    earlier = names < name
    validation = earlier & (names == names[earlier].max())
    fold = assigned((names == name).to_numpy(), validation.to_numpy(), (names > name).to_numpy())
    return without_leaks(fold, by_tag(ordered, Tag.BLOCK))


def _known_tasks(ordered: Table, fold: np.ndarray) -> np.ndarray:
    """Mark test rows as unused whose task training does not have."""
    tasks = ordered.frame[ordered.column_of(Tag.TASK)]
    known = tasks.isin(tasks[np.isin(fold, ["train", "validation"])]).to_numpy()
    return np.where((fold == "test") & ~known, "unused", fold)


def _has_facts(frame: pd.DataFrame) -> pd.Series:
    """Return where the facts of the accelerator are usable."""
    known: pd.Series = ~frame["generation"].isin(WITHOUT_FACTS)
    return known


def _checksums(texts: pd.Series) -> np.ndarray:
    return np.array([zlib.crc32(str(text).encode()) for text in texts], dtype=np.int64)
