"""The `Disclosure` column: result identifier, day of arrival and quarter of publication, from links to the result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from perfcast.parsing.text import compile_pattern, normalize, take_all, used_up

_IDENTIFIER = r"cpu2017-(\d{4})(\d{2})(\d{2})-\d{5}"
_LINK = compile_pattern(
    rf"<a href ?= ?\"[\w./:-]{{0,200}}?res(\d{{4}}q[1-4])/({_IDENTIFIER})\.[a-z]{{2,5}}\"> ?\w{{1,10}} ?</a>"
)
_PLAIN = compile_pattern(rf"^()({_IDENTIFIER})$")


@dataclass(frozen=True)
class Disclosure:
    """Identity of a published result.

    `arrival_day` is the day in the identifier, when the result was handed in; `quarter` is that of publication.
    """

    result_id: str | None = None
    arrival_day: date | None = None
    quarter: str | None = None
    complete: bool = False


def parse_disclosure(text: str) -> Disclosure:
    """Parse links `<A HREF=".../res2020q4/cpu2017-20201109-00001.html">HTML</A>`, or a bare identifier."""
    matches, remainder = take_all(_LINK, normalize(text))
    if not matches:
        matches, remainder = take_all(_PLAIN, remainder)
    if not matches:
        return Disclosure()
    first = matches[0]
    agree = {(match[1].lower(), match[2].lower()) for match in matches}
    day = _day(int(first[3]), int(first[4]), int(first[5]))
    return Disclosure(
        result_id=first[2].lower(),
        arrival_day=day,
        quarter=first[1].lower() or None,
        complete=len(agree) == 1 and day is not None and used_up(remainder),
    )


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
