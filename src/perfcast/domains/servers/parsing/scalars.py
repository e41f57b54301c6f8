"""Parsers of columns with one plain value: number, flag, pointer size, month, link to the result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Generic, TypeVar

from perfcast.domains.servers.parsing.text_normalization import compile_pattern, extract_all, is_consumed, normalize

T = TypeVar("T")

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = compile_pattern(rf"^({'|'.join(_MONTHS)})[- ](\d{{4}})$")
_NUMBER = compile_pattern(r"^[+-]?\d{1,12}(?:\.\d{1,12})?$")
_POINTER = compile_pattern(r"^(32/64|32|64)[- ]?bits?$")
_SHOWN = 40
_IDENTIFIER = r"cpu20(?:17|26)-(\d{4})(\d{2})(\d{2})-\d{5}"
_LINK = compile_pattern(
    rf"<a href ?= ?\"[\w./:-]{{0,200}}?res(\d{{4}}q[1-4])/({_IDENTIFIER})\.[a-z]{{2,5}}\"> ?\w{{1,10}} ?</a>"
)
_PLAIN = compile_pattern(rf"^((?:/[\w/]{{0,200}}/)?)({_IDENTIFIER})(?:\.html)?$")


@dataclass(frozen=True)
class Disclosure:
    """Identity of a published result.

    `arrival_day` is the day in the identifier, when the result was handed in.
    """

    result_id: str | None = None
    arrival_day: date | None = None
    complete: bool = False


def parse_disclosure(text: str) -> Disclosure:
    """Parse links `<A HREF=".../res2020q4/cpu2017-20201109-00001.html">HTML</A>`, or an identifier or its path."""
    matches, remainder = extract_all(_LINK, normalize(text))
    if not matches:
        matches, remainder = extract_all(_PLAIN, remainder)
    if not matches:
        return Disclosure()
    first = matches[0]
    agree = {(match[1].lower(), match[2].lower()) for match in matches}
    day = _make_date(int(first[3]), int(first[4]), int(first[5]))
    return Disclosure(
        result_id=first[2].lower(),
        arrival_day=day,
        complete=len(agree) == 1 and day is not None and is_consumed(remainder),
    )


@dataclass(frozen=True)
class Scalar(Generic[T]):
    """One value, or None and the reason why the text does not give one."""

    value: T | None = None
    reason: str = ""

    @property
    def complete(self) -> bool:
        """True where the text gave a value."""
        return self.value is not None


def parse_number(text: str, low: float | None = None) -> Scalar[float]:
    """Parse a decimal number of at least `low`."""
    shown = normalize(text)
    if not shown:
        return Scalar(reason="no number" if not text.strip() else "text too long")
    if not _NUMBER.match(shown):
        return Scalar(reason=f"not a number: {shown[:_SHOWN]!r}")
    number = float(shown)
    if low is not None and number < low:
        return Scalar(reason=f"{shown} is below {low:g}")
    return Scalar(number)


def parse_flag(text: str) -> Scalar[bool]:
    """Parse `Yes` or `No`."""
    value = normalize(text)
    known = {"yes": True, "no": False}.get(value.casefold())
    return Scalar(known, "" if known is not None else f"neither Yes nor No: {value[:_SHOWN]!r}")


def parse_pointer_bits(text: str) -> Scalar[str]:
    """Parse a pointer size such as `64-bit` or `32/64-bit` to `64` or `32/64`."""
    value = normalize(text)
    match = _POINTER.match(value)
    return Scalar(match[1]) if match else Scalar(reason=f"no pointer size: {value[:_SHOWN]!r}")


def parse_month(text: str) -> Scalar[date]:
    """Parse `Mon-YYYY` to the first day of the month."""
    value = normalize(text)
    match = _MONTH.match(value)
    if match is None or match[2] == "0000":
        return Scalar(reason=f"not a month such as Jan-2020: {value[:_SHOWN]!r}")
    return Scalar(date(int(match[2]), _MONTHS.index(match[1].lower()) + 1, 1))


def _make_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
