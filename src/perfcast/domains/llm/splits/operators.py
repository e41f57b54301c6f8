"""Splits of operators on GPUs: families, generations, shapes and sizes that training does not have, and few known rows.

Siblings of one family share their silicon, so whole families are held out: one GPU alone is nearly known from the
others. Random rows are no split here: neighbors in a grid of sizes are near-copies.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import Check, check_values
from perfcast.splits.declaration import Split, declare_split
from perfcast.splits.row_groups import by_tag, by_values
from perfcast.splits.subsets import as_frame, assigned, by_key, draw_validation, without_leaks
from perfcast.utils.errors import UserError

FAMILY, GPU, OPERATOR, SITE, SHAPE, FORMAT = "gpu_family", "gpu", "op", "shape_site", "shape", "dtype"
"""Columns that the splits read."""
APART = "battlemage"
"""Family of another vendor, with other software: it trains, and is tested in a split of its own."""
GENERATIONS = (("ampere", "ada"), ("hopper",), ("blackwell",))
"""Families for servers, the oldest first; others are in no forward split."""
SIZES = {
    "gemm": ("m", 2560),
    "context_attention": ("sequence", 3072),
    "generation_attention": ("sequence", 2047),
    "moe": ("tokens", 2048),
}
"""Operator -> its size and the largest one in training, the upper quartile of the rows."""
ONE_IN = 4
"""Where whole families are held out, training has one shape in so many of the operators with a size: more rows cost
time and memory without a smaller error. Other operators have too few rows to leave some out."""
UPPER_BITS = 16
SHAPE_FOLDS = 5
MIN_SHARE = 0.02
"""Least share of the training rows of a family that validates alone."""


@declare_split("unseen GPU families", "GPUs of a family without a result in training", check_values(FAMILY))
def unseen_gpu_family(table: Table, seed: int) -> pd.DataFrame:
    """Test on families of GPUs that nobody has measured: one fold per family, all others in training.

    The family of another vendor is tested in `unseen_vendor` alone.
    """
    ordered = by_key(table, FAMILY, OPERATOR, SHAPE)
    family = ordered.frame[FAMILY].astype("str").to_numpy()
    tests = [family == name for name in sorted(set(family) - {APART})]
    return _families_held_out(table, ordered, family, tests, seed)


@declare_split("unseen vendor", "GPUs of another vendor, with other software", check_values(FAMILY))
def unseen_vendor(table: Table, seed: int) -> pd.DataFrame:
    """Test on the GPU of a vendor that training does not have.

    Raises: UserError when the dataset has one vendor.
    """
    ordered = by_key(table, FAMILY, OPERATOR, SHAPE)
    family = ordered.frame[FAMILY].astype("str").to_numpy()
    if APART not in family:
        raise UserError("the split 'unseen_vendor' needs two vendors", f"{table.dataset!r} has one", "leave it out")
    return _families_held_out(table, ordered, family, [family == APART], seed)


def _older(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row is of a later generation than all training rows, in a format that training has."""
    rank = {name: number for number, names in enumerate(GENERATIONS) for name in names}
    generation = table.frame[FAMILY].astype("str").map(rank)
    learned, tested = fold.isin(["train", "validation"]), fold == "test"
    known = int((~(generation[tested] > generation[learned].max())).sum())
    problems = [f"{known} test rows of a generation as old as one of training"] if known else []
    formats = table.frame[OPERATOR].astype("str") + "|" + table.frame[FORMAT].astype("str")
    new = int((~formats[tested].isin(set(formats[learned]))).sum())
    return problems + ([f"{new} test rows of a format that training does not have"] if new else [])


@declare_split("next GPU generations", "each generation of GPUs, trained on older ones", _older)
def next_gpu_generation(table: Table, seed: int) -> pd.DataFrame:
    """Test on every generation but the first, trained on all older ones.

    Rows of an operator and number format that no older GPU has are unused: see `unseen_format`.
    Raises: UserError when the dataset has less than two of the generations.
    """
    ordered = by_key(table, FAMILY, OPERATOR, FORMAT, SHAPE)
    family, blocks = ordered.frame[FAMILY].astype("str").to_numpy(), by_tag(ordered, Tag.BLOCK)
    rng, drawn = np.random.default_rng(seed), _thin(ordered.frame)
    folds = []
    for older, test in _generations(table, family):
        new = test & ~_is_known_format(ordered, older & drawn)
        unused = ~(older | test) | new | (older & ~drawn)
        folds.append(without_leaks(assigned(test & ~new, _draw_family(family, older, rng), unused), blocks))
    return as_frame(table, ordered, folds)


@declare_split("unseen formats", "number formats that no older GPU has, on the newest generation", check_values(FAMILY))
def unseen_format(table: Table, seed: int) -> pd.DataFrame:
    """Test on the formats of the newest generation that no older GPU has, trained on older generations.

    Raises: UserError when the dataset has less than two generations, or no such format.
    """
    ordered = by_key(table, FAMILY, OPERATOR, FORMAT)
    family, blocks = ordered.frame[FAMILY].astype("str").to_numpy(), by_tag(ordered, Tag.BLOCK)
    older, newest = _generations(table, family)[-1]
    test = newest & ~_is_known_format(ordered, older)
    validation = _draw_family(family, older, np.random.default_rng(seed))
    unused = ~(older | test) | (older & ~_thin(ordered.frame))
    return as_frame(table, ordered, [without_leaks(assigned(test, validation, unused), blocks)])


@declare_split("unseen layer shapes", "layers of a shape without a result on any GPU in training", check_values(SITE))
def unseen_shape_site(table: Table, seed: int) -> pd.DataFrame:
    """Test on shapes of layers that nobody has measured on any GPU: five folds by the CRC-32 of the layer's name."""
    ordered = by_key(table, SITE)
    site, blocks = ordered.frame[SITE].astype("str"), by_tag(ordered, Tag.BLOCK)
    fold_of = site.map({name: zlib.crc32(name.encode()) % SHAPE_FOLDS for name in site.unique()}).to_numpy()
    groups, rng = by_values(ordered.frame, [SITE]), np.random.default_rng(seed)
    tests = [fold_of == fold for fold in np.unique(fold_of)]
    return as_frame(
        table, ordered, [without_leaks(assigned(test, draw_validation(groups, test, rng)), blocks) for test in tests]
    )


def _smaller(table: Table, fold: pd.Series) -> list[str]:
    """Check that every test row is larger than the bound of its operator, and no training row is."""
    large = _is_large(table.frame)
    wrong = int((large & fold.isin(["train", "validation"])).sum()) + int((~large & (fold == "test")).sum())
    return [f"{wrong} rows on the wrong side of their operator's bound"] if wrong else []


@declare_split("larger sizes", "more tokens or longer sequences than in training", _smaller)
def larger_size(table: Table, seed: int) -> pd.DataFrame:
    """Test on larger sizes than any training row of the operator has."""
    ordered = by_key(table, OPERATOR, SITE, *(name for name, _ in SIZES.values()))
    test, blocks = _is_large(ordered.frame).to_numpy(), by_tag(ordered, Tag.BLOCK)
    validation = draw_validation(by_values(ordered.frame, [SITE]), test, np.random.default_rng(seed))
    return as_frame(table, ordered, [without_leaks(assigned(test, validation), blocks)])


def _few_known(shots: int) -> Check:
    """Return the check that training has at most `shots` rows per task of the tested families, all of one GPU."""

    def check(table: Table, fold: pd.Series) -> list[str]:
        family = table.frame[FAMILY].astype("str")
        of_test = family.isin(set(family[fold == "test"])) & fold.isin(["train", "validation"])
        known = table.frame.loc[of_test]
        counts = known.groupby(known[table.column_of(Tag.TASK)].astype("str")).size()
        gpus = known.groupby(family[of_test])[GPU].nunique()
        problems = (
            [f"more than {shots} rows known of {', '.join(counts.index[counts > shots])}"]
            if (counts > shots).any()
            else []
        )
        return problems + ([f"several GPUs known of {', '.join(gpus.index[gpus > 1])}"] if (gpus > 1).any() else [])

    return check


def known_rows(shots: int) -> Split:
    """Return the split with families held out, but for `shots` rows per task of one of the family's GPUs."""

    def make(table: Table, seed: int) -> pd.DataFrame:
        return _few_shot(table, shots, seed)

    description = f"GPUs of a family of which training has {shots} results per operator, on one GPU"
    return declare_split(f"unseen GPU families, {shots} rows known", description, _few_known(shots))(make)


gpu_few_shot_10 = known_rows(10)
gpu_few_shot_100 = known_rows(100)
gpu_few_shot_1000 = known_rows(1000)


def _few_shot(table: Table, shots: int, seed: int) -> pd.DataFrame:
    """Hold out families but for the rows of smallest CRC-32 of their first GPU by name; so do the validation rows."""
    ordered = by_key(table, FAMILY, GPU, OPERATOR, SHAPE)
    family, blocks = ordered.frame[FAMILY].astype("str").to_numpy(), by_tag(ordered, Tag.BLOCK)
    shown, drawn = _first_rows(ordered, shots), _thin(ordered.frame)
    rng = np.random.default_rng(seed)
    folds = []
    for name in sorted(set(family) - {APART}):
        test = family == name
        validation = _draw_family(family, ~test, rng) & ~shown
        folds.append(without_shown(assigned(test & ~shown, validation, ~(test | shown | drawn)), blocks, shown))
    return as_frame(table, ordered, folds)


def without_shown(subsets: np.ndarray, blocks: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Mark test rows as unused whose block has a row that is shown."""
    known = np.isin(blocks, blocks[shown & (subsets == "train")]) & (subsets == "test")
    return without_leaks(np.where(known, "unused", subsets), blocks)


def _first_rows(ordered: Table, shots: int) -> np.ndarray:
    """Mark the `shots` rows per task with the smallest CRC-32 of their key, of the first GPU of every family."""
    frame = ordered.frame
    keys = frame[ordered.column_of(Tag.ROW)].astype("str")
    first = frame[GPU].astype("str") == frame[GPU].astype("str").groupby(frame[FAMILY].astype("str")).transform("min")
    drawn = pd.DataFrame(
        {
            "crc": [zlib.crc32(key.encode()) for key in keys],
            "family": frame[FAMILY].astype("str").to_numpy(),
            "task": frame[ordered.column_of(Tag.TASK)].astype("str").to_numpy(),
        }
    )[first.to_numpy()]
    rank = drawn.sort_values("crc", kind="stable").groupby(["family", "task"]).cumcount()
    shown = np.zeros(len(frame), dtype=bool)
    shown[rank.index[rank < shots]] = True
    return shown


def _families_held_out(
    table: Table, ordered: Table, family: np.ndarray, tests: Iterable[np.ndarray], seed: int
) -> pd.DataFrame:
    blocks, rng, drawn = by_tag(ordered, Tag.BLOCK), np.random.default_rng(seed), _thin(ordered.frame)
    folds = [without_leaks(assigned(test, _draw_family(family, ~test, rng), ~(test | drawn)), blocks) for test in tests]
    return as_frame(table, ordered, folds)


def _thin(frame: pd.DataFrame) -> np.ndarray:
    """Mark the rows that may train: one shape in `ONE_IN`, on every GPU, and all rows of operators without a size.

    The upper bits of the checksum choose. Its lower bits chose the shapes of the dataset, and checksums of similar
    texts differ by a constant, so that the lower bits would choose whole number formats.
    """
    shape = frame[SHAPE].astype("str")
    drawn = shape.map({name: (zlib.crc32(name.encode()) >> UPPER_BITS) % ONE_IN == 0 for name in shape.unique()})
    return np.asarray(drawn.to_numpy(dtype=bool) | ~frame[OPERATOR].isin(list(SIZES)).to_numpy())


def _draw_family(family: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a family of the known rows that validates: of the same vendor, with rows enough to measure an error."""
    names, counts = np.unique(family[known], return_counts=True)
    able = [
        name for name, count in zip(names, counts, strict=True) if count >= MIN_SHARE * known.sum() and name != APART
    ]
    if len(names) < 2 or not able:
        return np.zeros(len(family), dtype=bool)
    return np.asarray(known & (family == rng.choice(able)))


def _generations(table: Table, family: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows of older generations and of the next one, for every generation but the first."""
    present = [rows for rows in (np.isin(family, names) for names in GENERATIONS) if rows.any()]
    if len(present) < 2:
        raise UserError(
            "the split needs two generations of GPUs", f"{table.dataset!r} has {len(present)}", "choose another split"
        )
    return [(np.logical_or.reduce(present[:number]), present[number]) for number in range(1, len(present))]


def _is_known_format(ordered: Table, older: np.ndarray) -> np.ndarray:
    """Mark the rows of an operator and number format that the older rows have."""
    formats = by_values(ordered.frame, [OPERATOR, FORMAT])
    return np.asarray(np.isin(formats, formats[older]))


def _is_large(frame: pd.DataFrame) -> pd.Series:
    """Mark the rows above the bound of their operator; an operator without a bound has none."""
    large = pd.Series(False, index=frame.index)
    for operator, (name, bound) in SIZES.items():
        large |= (frame[OPERATOR].astype("str") == operator) & (frame[name] > bound)
    return large
