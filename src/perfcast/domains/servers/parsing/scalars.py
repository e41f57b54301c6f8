"""Parsers of columns with one value or two: number, flag, pointer size, month, link, orderable chips."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from perfcast.domains.servers.parsing.text_normalization import compile_pattern, extract_first, normalize

_MONTHS = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_MONTH = compile_pattern(rf"^({'|'.join(_MONTHS)})[- ](\d{{4}})$")
_NUMBER = compile_pattern(r"^[+-]?\d{1,12}(?:\.\d{1,12})?$")
_POINTER = compile_pattern(r"^(32/64|32|64)[- ]?bits?$")
_IDENTIFIER = compile_pattern(r"(?<![\w-])((?:cpu20(?:17|26)|power_ssj2008)-(\d{4})(\d{2})(\d{2})-\d{5})(?![\w-])")

_CORES = compile_pattern(r";[\d,. ]{1,60}cores?\b")
_RANGE = compile_pattern(r"(?<!\w)(\d{1,3}) ?(?:-|\bto\b) ?(\d{1,3})(?!\w)")
_COUNT = compile_pattern(r"(?<!\w)\d{1,3}(?!\w)")


@dataclass(frozen=True)
class Disclosure:
    """Identity of a published result.

    `arrival_day` is the day in the identifier, when the result was handed in.
    """

    result_id: str | None = None
    arrival_day: date | None = None


def parse_disclosure(text: str) -> Disclosure:
    """Parse the first identifier in a text of links or a path, such as `.../res2020q4/cpu2017-20201109-00001.html`."""
    match = _IDENTIFIER.search(normalize(text))
    with suppress(ValueError):
        return Disclosure(match[1].lower(), date(*map(int, match.group(2, 3, 4)))) if match else Disclosure()
    return Disclosure()


def parse_number(text: str, low: float | None = None) -> float | None:
    """Parse a decimal number of at least `low`; None for any other text."""
    value = normalize(text)
    number = float(value) if _NUMBER.match(value) else None
    return None if number is None or (low is not None and number < low) else number


def parse_flag(text: str) -> bool | None:
    """Parse `Yes` or `No`."""
    return {"yes": True, "no": False}.get(normalize(text).casefold())


def parse_pointer_bits(text: str) -> str | None:
    """Parse a pointer size such as `64-bit` or `32/64-bit` to `64` or `32/64`."""
    match = _POINTER.match(normalize(text))
    return match[1] if match else None


def parse_month(text: str) -> date | None:
    """Parse `Mon-YYYY` to the first day of the month."""
    match = _MONTH.match(normalize(text))
    return (
        None
        if match is None or match[2] == "0000"
        else date(
            int(match[2]),
            _MONTHS.index(match[1].lower()) + 1,
            1,
        )
    )


@dataclass(frozen=True)
class Orderable:
    """Orderable chips: the smallest and the largest number."""

    orderable_min: int | None = None
    orderable_max: int | None = None


def parse_orderable(text: str) -> Orderable:
    """Parse values such as `1,2 chips`, `1, 2, 4 chip(s)` or `4 to 16 chips`."""
    _, value = extract_first(_CORES, normalize(text))
    numbers = {int(number) for match in _RANGE.finditer(value) for number in match.groups()}
    numbers |= {int(number) for number in _COUNT.findall(_RANGE.sub(" ", value))}
    counts = sorted(numbers - {0})
    return Orderable(counts[0], counts[-1]) if counts else Orderable()
