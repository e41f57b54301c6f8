"""Encoded rows as NumPy arrays, and the sizes that a network needs to read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

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


UNKNOWN, MISSING, FIRST_KNOWN = 0, 1, 2
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

    @property
    def numbers_per_group(self) -> list[int]:
        """Number of numerical tokens of each group."""
        return [self.number_groups.count(group) for group in range(self.n_groups)]

    @property
    def categories_per_group(self) -> list[int]:
        """Number of categorical tokens of each group."""
        return [self.category_groups.count(group) for group in range(self.n_groups)]
