"""Applying a parser to a column: once per distinct value, and how much of it was understood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, Protocol

import numpy as np
import pandas as pd

from perfcast.data.parsing.text_normalization import states_something


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


_ROWS_AT_ONCE = 1 << 16
"""Rows of a column of texts that are parsed together: where nearly all differ, so many answers are held at a time."""


class Parsed(Protocol):
    """The result of a parser: a frozen dataclass that tells whether the whole text was understood."""

    @property
    def complete(self) -> bool:
        """Whether the whole text was understood."""


@dataclass(frozen=True)
class Coverage:
    """How much of a column was understood, weighted by rows; `examples` are frequent values that were not."""

    rows: int
    stated: int
    complete: int
    examples: tuple[str, ...]

    @property
    def share(self) -> float:
        """Rows understood completely over rows that state anything; 1 when none does."""
        return self.complete / self.stated if self.stated else 1.0


def parse_column(texts: pd.Series, parse: Callable[[str], Parsed], wanted: Iterable[str] | None = None) -> pd.DataFrame:
    """Parse every distinct text of a column once; one column per field of the result, or per `wanted` one.

    Numbers and flags become float64 with NaN for None; a missing text is parsed as "". Of coded texts, texts are coded.
    Shapes: on the index of `texts`.
    """
    names = list(wanted or [field.name for field in fields(parse(""))])  # type: ignore[arg-type]
    if is_coded(texts):
        codes, distinct = codes_of(texts)
        results = [*map(parse, distinct), parse("")]
        answers = {name: [getattr(result, name) for result in results] for name in names}
        # each column by itself: whoever takes one need not keep the others
        return pd.DataFrame({name: spread(values, codes, texts.index) for name, values in answers.items()}, copy=False)
    if len(texts) > _ROWS_AT_ONCE:
        parts = [texts.iloc[start : start + _ROWS_AT_ONCE] for start in range(0, len(texts), _ROWS_AT_ONCE)]
        return pd.concat([parse_column(part, parse, names) for part in parts])
    plain = texts.fillna("").astype(str)
    parsed = {text: parse(text) for text in plain.unique()}
    return pd.DataFrame({name: _field(plain, parsed, name) for name in names}, index=texts.index)


def measure(texts: pd.Series, parse: Callable[[str], Parsed], examples: int = 5) -> Coverage:
    """Measure how many rows of a column a parser understands completely."""
    plain = texts if is_coded(texts) else texts.fillna("").astype(str)
    counts = {str(text): int(count) for text, count in value_counts(plain).items()}
    stated = {text: count for text, count in counts.items() if states_something(text)}
    missed = [text for text in stated if not parse(text).complete]
    return Coverage(
        rows=sum(counts.values()),
        stated=sum(stated.values()),
        complete=sum(stated.values()) - sum(stated[text] for text in missed),
        examples=tuple(missed[:examples]),
    )


def _field(texts: pd.Series, results: Mapping[str, Parsed], name: str) -> pd.Series:
    values: dict[str, Any] = {text: getattr(result, name) for text, result in results.items()}
    column = texts.map(values) if texts.size else texts.astype(object)
    if all(value is None or isinstance(value, bool | int | float) for value in values.values()):
        return column.astype("float64")
    return column
