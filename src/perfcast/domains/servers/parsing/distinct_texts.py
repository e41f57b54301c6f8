"""Application of a parser to the distinct texts of a column, coded columns, and the coverage of a parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, Protocol

import numpy as np
import pandas as pd

from perfcast.domains.servers.parsing.text_normalization import is_stated

_ROWS_AT_ONCE = 1 << 16
"""Rows of a column of texts that are parsed together; it bounds the results in memory where nearly all texts differ."""


class Parsed(Protocol):
    """Result of a parser: a frozen dataclass with the flag `complete`."""

    @property
    def complete(self) -> bool:
        """True where the parser understood the whole text."""


@dataclass(frozen=True)
class Coverage:
    """Rows that a parser understood completely; `examples` are frequent texts that it did not."""

    rows: int
    stated: int
    complete: int
    examples: tuple[str, ...]

    @property
    def share(self) -> float:
        """Rows understood completely over rows that state anything; 1 when none does."""
        return self.complete / self.stated if self.stated else 1.0


def parse_column(
    texts: pd.Series, parse: Callable[[str], Parsed], selected: Iterable[str] | None = None
) -> pd.DataFrame:
    """Parse every distinct text of a column once; one column per field of the result, or per `selected` one.

    Numbers and flags become float64 with NaN for None; a missing text is parsed as "". Of coded texts, texts are coded.
    Shapes: on the index of `texts`.
    """
    names = list(selected or [field.name for field in fields(parse(""))])  # type: ignore[arg-type]
    if is_coded(texts):
        codes, distinct = encode_texts(texts)
        parsed = [*map(parse, distinct), parse("")]
        columns = {name: [getattr(result, name) for result in parsed] for name in names}
        # copy=False keeps the columns separate, so that one column does not hold the others in memory
        return pd.DataFrame(
            {name: expand_codes(values, codes, texts.index) for name, values in columns.items()}, copy=False
        )
    if len(texts) > _ROWS_AT_ONCE:
        parts = [texts.iloc[start : start + _ROWS_AT_ONCE] for start in range(0, len(texts), _ROWS_AT_ONCE)]
        return pd.concat([parse_column(part, parse, names) for part in parts])
    plain = texts.fillna("").astype(str)
    results = {text: parse(text) for text in plain.unique()}
    return pd.DataFrame({name: _map_field(plain, results, name) for name in names}, index=texts.index)


def measure_coverage(texts: pd.Series, parse: Callable[[str], Parsed], examples: int = 5) -> Coverage:
    """Measure how many rows of a column a parser understands completely."""
    plain = texts if is_coded(texts) else texts.fillna("").astype(str)
    counts = {str(text): int(count) for text, count in count_texts(plain).items()}
    stated = {text: count for text, count in counts.items() if is_stated(text)}
    missed = [text for text in stated if not parse(text).complete]
    return Coverage(
        rows=sum(counts.values()),
        stated=sum(stated.values()),
        complete=sum(stated.values()) - sum(stated[text] for text in missed),
        examples=tuple(missed[:examples]),
    )


def is_coded(values: pd.Series) -> bool:
    """Return whether a column is coded, that is, categorical."""
    return isinstance(values.dtype, pd.CategoricalDtype)


def encode_texts(values: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return the code of every row's text, -1 where it is missing, and the distinct texts. Shapes: codes (n,)."""
    if is_coded(values):
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


def count_texts(values: pd.Series) -> pd.Series:
    """Count a column's texts as pandas does, the most frequent first and the earlier one of equally frequent ones."""
    if not is_coded(values):
        return values.value_counts()
    codes = pd.Series(values.cat.codes.to_numpy())
    counts = codes[codes >= 0].value_counts()
    return counts.set_axis(values.cat.categories[counts.index].astype("str"), axis=0)


def _map_field(texts: pd.Series, results: Mapping[str, Parsed], name: str) -> pd.Series:
    values: dict[str, Any] = {text: getattr(result, name) for text, result in results.items()}
    column = texts.map(values) if texts.size else texts.astype(object)
    if all(value is None or isinstance(value, bool | int | float) for value in values.values()):
        return column.astype("float64")
    return column
