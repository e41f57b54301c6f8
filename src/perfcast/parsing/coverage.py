"""Applying a parser to a column: once per distinct value, and how much of it was understood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import pandas as pd

from perfcast.parsing.distinct import codes_of, is_coded, spread, value_counts
from perfcast.parsing.text import states_something

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
