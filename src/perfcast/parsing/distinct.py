"""Columns in which few distinct texts stand in many rows: every text is looked at once, and its answer spread.

A coded column is a pandas category of texts: a number of one to four bytes per row instead of the text. What is made of
it here is coded too, numbers and dates apart. Plain columns of text are taken as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd


def is_coded(values: pd.Series) -> bool:
    """Say whether a column is coded."""
    return isinstance(values.dtype, pd.CategoricalDtype)


def codes_of(values: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return the number of every row's text and the distinct texts that rows have, (n,), -1 where it is missing."""
    if is_coded(values):
        codes = values.cat.codes.to_numpy()
        seen = np.unique(codes)
        seen = seen[seen >= 0]
        order = np.full(len(values.cat.categories) + 1, -1, dtype=np.int32)
        order[seen] = np.arange(len(seen))
        # the last entry answers for -1
        return order[codes], [str(text) for text in values.cat.categories[seen]]
    codes, texts = pd.factorize(values)
    return codes, [str(text) for text in texts]


def by_distinct(values: pd.Series, function: Callable[[str], Any]) -> pd.Series:
    """Return a function of every row's text, missing where that is; see `spread`."""
    codes, texts = codes_of(values)
    return spread([function(text) for text in texts], codes, values.index)


def spread(answers: Sequence[Any], codes: np.ndarray, index: pd.Index) -> pd.Series:
    """Return the answer of every row's code: coded texts, else dates, flags where each is known, or float64.

    A code of -1 and an answer of None, NaN or NaT are missing.
    """
    known = [answer for answer in answers if not pd.isna(answer)]
    if known and all(isinstance(answer, str) for answer in known):
        places, texts = pd.factorize(pd.Series(list(answers), dtype="str"))
        categories = pd.Index(texts, dtype="str")
        return pd.Series(pd.Categorical.from_codes(np.append(places, -1)[codes], categories), index=index)
    if known and all(isinstance(answer, date) for answer in known):
        days = pd.to_datetime(pd.Series([*answers, None], dtype="object")).astype("datetime64[us]")
        return pd.Series(days.to_numpy()[codes], index=index)
    if len(known) == len(answers) and all(isinstance(answer, bool) for answer in known) and (codes >= 0).all():
        return pd.Series(np.array([*known, False], dtype=bool)[codes], index=index)
    numbers = np.array([np.nan if pd.isna(answer) else float(answer) for answer in [*answers, None]])
    return pd.Series(numbers[codes], index=index)


def combinations(frame: pd.DataFrame, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Number the combinations of some columns' values in order of appearance; missing values are equal.

    Shapes: the number of every row (n,), and of every number the first row that has it.
    """
    numbers = np.zeros(len(frame), dtype=np.int64)
    for name in names:
        codes, values = pd.factorize(frame[name], use_na_sentinel=False)
        numbers = pd.factorize(numbers * max(len(values), 1) + codes)[0]
    first = np.full(int(numbers.max(initial=-1)) + 1, -1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(frame) - 1, -1, -1)
    return numbers, first


def value_counts(values: pd.Series) -> pd.Series:
    """Count a column's texts as pandas does, the most frequent first and the earlier one of equally frequent ones."""
    if not is_coded(values):
        return values.value_counts()
    codes = pd.Series(values.cat.codes.to_numpy())
    counts = codes[codes >= 0].value_counts()
    return counts.set_axis(values.cat.categories[counts.index].astype("str"), axis=0)
