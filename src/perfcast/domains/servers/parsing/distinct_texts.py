"""Application of a parser to the distinct texts of a column, and coded columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd


def parse_column(texts: pd.Series, parse: Callable[[str], Any], names: Sequence[str] = ("value",)) -> pd.DataFrame:
    """Parse every distinct text of a column once; one column per name.

    A parser returns a dataclass with fields of these names, or one value. Numbers and flags become float64 with NaN for
    None, and texts are coded; a missing text is parsed as "". Shapes: on the index of `texts`.
    """

    def read(text: str) -> list[Any]:
        result = parse(text)
        return [getattr(result, name) for name in names] if is_dataclass(result) else [result]

    codes, distinct = encode_texts(texts)
    columns = zip(names, zip(*map(read, [*distinct, ""]), strict=True), strict=True)
    # copy=False keeps the columns separate, so that one column does not hold the others in memory
    return pd.DataFrame({name: expand_codes(values, codes, texts.index) for name, values in columns}, copy=False)


def encode_texts(values: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return the code of every row's text, -1 where it is missing, and the distinct texts. Shapes: codes (n,)."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes = values.cat.codes.to_numpy()
        seen = np.unique(codes)
        seen = seen[seen >= 0]
        order = np.full(len(values.cat.categories) + 1, -1, dtype=np.int32)
        order[seen] = np.arange(len(seen))
        # the last entry is the result for -1
        return order[codes], [str(text) for text in values.cat.categories[seen]]
    codes, texts = pd.factorize(values)
    return codes, [str(text) for text in texts]


def map_distinct(values: pd.Series, function: Callable[[str], Any]) -> pd.Series:
    """Apply a function once per distinct text; a missing text stays missing. See `expand_codes`."""
    codes, texts = encode_texts(values)
    return expand_codes([function(text) for text in texts], codes, values.index)


def expand_codes(results: Sequence[Any], codes: np.ndarray, index: pd.Index) -> pd.Series:
    """Return the result of every row's code: coded texts, else dates, flags where each is known, or float64.

    A code of -1 and a result of None, NaN or NaT are missing.
    """
    known = [result for result in results if not pd.isna(result)]
    if known and all(isinstance(result, str) for result in known):
        places, texts = pd.factorize(pd.Series(list(results), dtype="str"))
        categories = pd.Index(texts, dtype="str")
        return pd.Series(pd.Categorical.from_codes(np.append(places, -1)[codes], categories), index=index)
    if known and all(isinstance(result, date) for result in known):
        days = pd.to_datetime(pd.Series([*results, None], dtype="object")).astype("datetime64[us]")
        return pd.Series(days.to_numpy()[codes], index=index)
    if len(known) == len(results) and all(isinstance(result, bool) for result in known) and (codes >= 0).all():
        return pd.Series(np.array([*known, False], dtype=bool)[codes], index=index)
    numbers = np.array([np.nan if pd.isna(result) else float(result) for result in [*results, None]])
    return pd.Series(numbers[codes], index=index)


def number_combinations(frame: pd.DataFrame, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
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
