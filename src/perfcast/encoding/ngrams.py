"""Character n-grams: features of strings, also of those absent from training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

GRAM_LENGTH = 3
"""Characters per n-gram; the ends of the string are marked, so a prefix differs from the same letters inside."""

MAX_GRAMS = 48
"""Distinct n-grams kept per string: bounds memory when someone puts a page of text in a cell."""


def grams_of(text: str) -> list[str]:
    """Return the distinct lower-case character n-grams of a string in order of appearance, at most `MAX_GRAMS`."""
    padded = f"^{' '.join(text.lower().split())}$"
    last = max(1, len(padded) - GRAM_LENGTH + 1)
    return list(dict.fromkeys(padded[i : i + GRAM_LENGTH] for i in range(last)))[:MAX_GRAMS]


def vocabulary(texts: Iterable[str], limit: int) -> list[str]:
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
