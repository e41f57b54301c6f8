"""Feature columns to tokens: the one encoder of every neural predictor.

Every statistic comes from the fitted rows. A token belongs to the group its column declares; tokens are ordered by
group and name, so the order of columns in a table never matters.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from perfcast.features.encoding.columns import distinct_labels, labels, number_matrix
from perfcast.features.encoding.columns import numbers as raw_numbers
from perfcast.schema.table import Column, Kind, Role, Tag

GRAM_LENGTH = 3
"""Characters per n-gram; the ends of the string are marked, so a prefix differs from the same letters inside."""

MAX_GRAMS = 48
"""Largest number of distinct n-grams per string: bounds memory when someone puts a page of text in a cell."""


def grams_of(text: str) -> list[str]:
    """Return the distinct lower-case character n-grams of a string in order of appearance, at most `MAX_GRAMS`."""
    padded = f"^{' '.join(text.lower().split())}$"
    last = max(1, len(padded) - GRAM_LENGTH + 1)
    return list(dict.fromkeys(padded[i : i + GRAM_LENGTH] for i in range(last)))[:MAX_GRAMS]


def gram_vocabulary(texts: Iterable[str], limit: int) -> list[str]:
    """Return the most frequent n-grams over distinct strings, ties and result in alphabetical order."""
    counts = Counter(gram for text in sorted(set(texts)) for gram in grams_of(text))
    selected = sorted(counts, key=lambda gram: (-counts[gram], gram))[:limit]
    return sorted(selected)


def gram_rows(texts: list[str], known: dict[str, int]) -> np.ndarray:
    """Return the n-gram ids of strings; ids start at 1, 0 is padding, an unknown n-gram is left out.

    Shapes: result (len(texts), longest) with at least one column.
    """
    ids = [[known[gram] for gram in grams_of(text) if gram in known] for text in texts]
    width = max([1, *map(len, ids)])
    rows = np.zeros((len(texts), width), dtype=np.int64)
    for row, row_ids in zip(rows, ids, strict=True):
        row[: len(row_ids)] = row_ids
    return rows


UNKNOWN = 0
MISSING = 1
FIRST_KNOWN = 2
"""Codes of a categorical token: a value absent from training, no value, and where the vocabulary starts."""


@dataclass(frozen=True)
class Tokens:
    """Encoded rows.

    Shapes: numbers (n, numerical) float32, standardized, 0 where missing; missing (n, numerical) float32, 1 where
    missing; codes (n, categorical) int64; strings (n, categorical) int64, a row of `grams` each;
    grams (strings, longest) int64, 0 is padding; row 0 of `grams` is the empty string of a missing value.
    """

    numbers: np.ndarray
    missing: np.ndarray
    codes: np.ndarray
    strings: np.ndarray
    grams: np.ndarray


@dataclass(frozen=True)
class TokenSpec:
    """Sizes of a token encoding, from which a network is built.

    number_groups      group index of each numerical token, ascending
    category_groups    group index of each categorical token, ascending
    vocabulary_sizes   codes of each categorical token, `UNKNOWN` and `MISSING` included
    n_grams            n-gram ids over all categorical tokens, padding included
    n_groups           groups of tokens
    """

    number_groups: list[int]
    category_groups: list[int]
    vocabulary_sizes: list[int]
    n_grams: int
    n_groups: int

    @property
    def n_numbers(self) -> int:
        """Number of numerical tokens."""
        return len(self.number_groups)

    @property
    def n_categories(self) -> int:
        """Number of categorical tokens."""
        return len(self.category_groups)


CLIP_DEVIATIONS = 8.0
"""Standardized numbers are clipped here: no machine, even a new one, is further out than this."""

_MIN_DEVIATION = 0.2
"""Smallest standard deviation as a share of the range: a few odd rows cannot give a column a steep slope. Chosen on
backtests of forward splits."""

LOG_SPAN = 4.0
"""A positive column whose largest value exceeds this many times its smallest is a quantity of scale: taken in logs."""

GRAMS_PER_COLUMN = 1000

_READ_AT_ONCE = 1 << 16
"""Cells that are read of a frame together: to read a column of few rows takes pandas a millisecond."""


@dataclass(frozen=True)
class _Token:
    """One token: the column it reads."""

    name: str
    group: str
    kind: Kind

    @property
    def column(self) -> Column:
        return Column(self.name, self.kind, Role.FEATURE, self.group)


@dataclass(frozen=True)
class _Number(_Token):
    """Standardized with `mean` and `deviation`, of logarithms where `log`; a deviation of 0 encodes absence alone."""

    log: bool
    mean: float
    deviation: float


@dataclass(frozen=True)
class _Category(_Token):
    """Values that have a code, and n-grams that have an id."""

    vocabulary: tuple[str, ...]
    grams: tuple[str, ...]


class TokenEncoder:
    """Encode declared feature columns as numerical and categorical tokens.

    Columns without information in the fitted rows (one value and never missing, or no value at all) make no token, nor
    does a numerical column that repeats another one up to logarithm and scale.
    A column of free text has no vocabulary: its strings are encoded by their n-grams alone. The task column is encoded
    even when it is declared as a key.
    """

    def __init__(self) -> None:
        self.numbers: tuple[_Number, ...] = ()
        self.categories: tuple[_Category, ...] = ()

    def fit(self, frame: pd.DataFrame, columns: Iterable[Column]) -> Self:
        """Take the statistics and vocabularies of the rows of `frame`."""
        used = sorted(
            (column for column in columns if column.role is Role.FEATURE or Tag.TASK in column.tags),
            key=lambda column: (column.group, column.name),
        )
        fitted = [_fit_number(column, frame) for column in used if column.kind in (Kind.NUMERICAL, Kind.DATE)]
        numbers = _without_repeats([number for number in fitted if number is not None], frame)
        categories = [_fit_category(column, frame) for column in used if column.kind in (Kind.CATEGORICAL, Kind.TEXT)]
        self.numbers = tuple(numbers)
        self.categories = tuple(category for category in categories if category is not None)
        return self

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups that have tokens, sorted; ("none",) when there is no token at all."""
        return tuple(sorted({token.group for token in self._tokens})) or ("none",)

    @property
    def spec(self) -> TokenSpec:
        """Sizes of the fitted tokens, for a network."""
        groups = self.groups
        return TokenSpec(
            number_groups=[groups.index(number.group) for number in self.numbers],
            category_groups=[groups.index(category.group) for category in self.categories],
            vocabulary_sizes=[FIRST_KNOWN + len(category.vocabulary) for category in self.categories],
            n_grams=1 + sum(len(category.grams) for category in self.categories),
            n_groups=len(groups),
        )

    @property
    def _tokens(self) -> tuple[_Token, ...]:
        return (*self.numbers, *self.categories)

    def transform(self, frame: pd.DataFrame) -> Tokens:
        """Encode rows; values never seen, missing or far out are encoded without an error."""
        # many rows column by column, so that there is no second matrix of all numbers in double precision
        shape = (len(frame), len(self.numbers))
        values = np.empty(shape, dtype=np.float32)
        missing = np.empty(shape, dtype=np.float32)
        at_once = max(1, _READ_AT_ONCE // max(1, len(frame)))
        for start in range(0, len(self.numbers), at_once):
            block = self.numbers[start : start + at_once]
            raw = number_matrix(frame, [number.column for number in block])
            for position, number in enumerate(block):
                scaled = _standardize(number, raw[:, position])
                missing[:, start + position] = unknown = np.isnan(scaled)
                values[:, start + position] = np.where(unknown, 0.0, scaled)
        return Tokens(values, missing, *self._encode_categories(frame))

    def _encode_categories(self, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = (len(frame), len(self.categories))
        codes = np.zeros(shape, dtype=np.int64)
        strings = np.zeros(shape, dtype=np.int64)
        blocks = [np.zeros((1, 1), dtype=np.int64)]
        height = 1
        first_gram = 1
        for position, category in enumerate(self.categories):
            places, texts = distinct_labels(frame, category.column)
            known = {value: FIRST_KNOWN + i for i, value in enumerate(category.vocabulary)}
            code_of = np.array([*(known.get(text, UNKNOWN) for text in texts), MISSING], dtype=np.int64)
            # factorize marks a missing value by -1, which picks the last code.
            codes[:, position] = code_of[places]
            strings[:, position] = np.where(places < 0, 0, places + height)
            gram_ids = {gram: first_gram + i for i, gram in enumerate(category.grams)}
            blocks.append(gram_rows(texts, gram_ids))
            height += len(texts)
            first_gram += len(category.grams)
        return codes, strings, _stack(blocks)

    def to_state(self) -> dict[str, Any]:
        """Return what was learned as values that JSON can hold."""
        return {
            "numbers": [asdict(number) for number in self.numbers],
            "categories": [asdict(category) for category in self.categories],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild an encoder from `to_state()`."""
        encoder = cls()
        encoder.numbers = tuple(_Number(**{**entry, "kind": Kind(entry["kind"])}) for entry in state["numbers"])
        encoder.categories = tuple(
            _Category(
                entry["name"], entry["group"], Kind(entry["kind"]), tuple(entry["vocabulary"]), tuple(entry["grams"])
            )
            for entry in state["categories"]
        )
        return encoder


def _fit_number(column: Column, frame: pd.DataFrame) -> _Number | None:
    raw = raw_numbers(frame, column)
    seen = raw[~np.isnan(raw)]
    if len(seen) == 0 or (len(seen) == len(raw) and seen.min() == seen.max()):
        return None
    log = bool(column.kind is Kind.NUMERICAL and seen.min() > 0 and seen.max() > LOG_SPAN * seen.min())
    scaled = np.log(seen) if log else seen
    deviation = max(float(scaled.std()), _MIN_DEVIATION * float(np.ptp(scaled))) if seen.min() < seen.max() else 0.0
    return _Number(column.name, column.group, column.kind, log, float(scaled.mean()), deviation)


def _without_repeats(numbers: Sequence[_Number], frame: pd.DataFrame) -> list[_Number]:
    """Keep the first of the numbers that are encoded alike on all rows: a token costs time, a repeat adds nothing."""
    # by digest: the columns themselves would be a second copy of the table
    first: dict[bytes, _Number] = {}
    for number in numbers:
        encoded = _standardize(number, raw_numbers(frame, number.column)).astype(np.float32)
        # Adding zero turns -0.0, which has other bytes, to 0.0.
        first.setdefault(hashlib.sha256((np.round(encoded, 4) + 0.0).tobytes()).digest(), number)
    return list(first.values())


def _standardize(number: _Number, raw: np.ndarray) -> np.ndarray:
    missing = np.isnan(raw)
    # A column with one value among missing ones has no scale: only its absence carries information.
    if number.deviation == 0.0:
        return np.where(missing, np.nan, 0.0)
    if number.log:
        # Zero or less has no logarithm; it is taken as the far small end, where the clip puts it.
        raw = np.where(raw > 0, np.log(np.where(raw > 0, raw, 1.0)), -np.inf)
    scaled = np.clip((raw - number.mean) / number.deviation, -CLIP_DEVIATIONS, CLIP_DEVIATIONS)
    return np.where(missing, np.nan, scaled)


def _fit_category(column: Column, frame: pd.DataFrame) -> _Category | None:
    values = labels(frame, column)
    missing = pd.isna(values)
    distinct = sorted(set(values[~missing]))
    if not distinct or (len(distinct) == 1 and not missing.any()):
        return None
    known = tuple(distinct) if column.kind is Kind.CATEGORICAL else ()
    grams = tuple(gram_vocabulary(distinct, GRAMS_PER_COLUMN))
    return _Category(column.name, column.group, column.kind, known, grams)


def _stack(blocks: Sequence[np.ndarray]) -> np.ndarray:
    width = max(block.shape[1] for block in blocks)
    return np.concatenate([np.pad(block, ((0, 0), (0, width - block.shape[1]))) for block in blocks])
