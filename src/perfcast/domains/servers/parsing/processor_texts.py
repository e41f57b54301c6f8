"""Parsers of two texts about processors: orderable chips, and the free text with turbo clock and front-side bus."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    extract_all,
    extract_first,
    is_consumed,
    normalize,
)

_CORES = compile_pattern(r";[\d,. ]{1,60}cores?\b")
_RANGE = compile_pattern(r"(?<!\w)(\d{1,3}) ?(?:-|\bto\b) ?(\d{1,3})(?!\w)")
_COUNT = compile_pattern(r"(?<!\w)\d{1,3}(?!\w)")
_WORDS = compile_pattern(r"\bor\b|\b(?:cpu )?[cx]hips?\b|\(s\)|\)s(?!\w)|\bCMIOUs?\b|\(on host\)")
_CHIP_WORDS = compile_pattern(r"\bc?[hc]hips?\b|\bx?hips?\b|\bprocessors?\b|\bCPUs?\b|\bsockets?\b")
_OTHER_UNITS = compile_pattern(
    r"\bcores?\b|\bCMUs?\b|\bCMPs?\b|\bboards?\b|\bblades?\b|\bcells?\b|\bnodes?\b|\bbooks?\b"
)
_REMARK = compile_pattern(r"\([^()]{3,80}\)")
_TURBO = compile_pattern(r"\bup to (\d(?:\.\d{1,3})?) ?GHz")
_TURBO_OFF = compile_pattern(r"\bturbo\b.{0,40}\b(?:disabled|off|not[ -]enabled|is not enabled)\b")
_BUS = compile_pattern(r"(?<![\w.])(\d{3,4}) ?(?:MHz|MT/s)?,? ?(?:system bus|front[ -]side bus|bus|FSB)\b")


@dataclass(frozen=True)
class Orderable:
    """Orderable chips: minimum, maximum, and every count; a range contains all its counts."""

    orderable_min: int | None = None
    orderable_max: int | None = None
    counts: tuple[int, ...] = ()
    complete: bool = False


def parse_orderable(text: str) -> Orderable:
    """Parse values such as `1,2 chips`, `1, 2, 4 chip(s)` or `4 to 16 chips`."""
    _, remainder = extract_first(_CORES, normalize(text))
    ranges, remainder = extract_all(_RANGE, remainder)
    listed, remainder = extract_all(_COUNT, remainder)
    _, remainder = extract_all(_WORDS, remainder)
    numbers = {int(match[0]) for match in listed}
    for match in ranges:
        low, high = sorted((int(match[1]), int(match[2])))
        numbers.update(range(low, high + 1))
    counts = tuple(sorted(numbers - {0}))
    if not counts:
        return Orderable()
    return Orderable(counts[0], counts[-1], counts, complete=0 not in numbers and is_consumed(remainder))


def parse_older_orderable(text: str) -> Orderable:
    """Parse values such as `1 or 2 chips`; a text that counts cores, boards or blades has no counts."""
    value = _REMARK.sub(" ", normalize(text))
    if _OTHER_UNITS.search(value):
        return Orderable()
    return parse_orderable(_CHIP_WORDS.sub(" ", value))


@dataclass(frozen=True)
class Characteristics:
    """Turbo clock and bus as stated; None for what the text omits.

    Units: `turbo_mhz` MHz, `bus_mts` MT/s of the front-side bus (its "MHz" are transfers). The text may say anything
    else as well, so complete means that one of the three was found.
    """

    turbo_mhz: float | None = None
    turbo_off: bool | None = None
    bus_mts: float | None = None
    complete: bool = False


def parse_characteristics(text: str) -> Characteristics:
    """Parse values such as `Intel Turbo Boost Technology up to 2.80 GHz` or `1333 MHz system bus`."""
    value = normalize(text)
    off = _TURBO_OFF.search(value) is not None
    turbo = None if off else _TURBO.search(value)
    bus = _BUS.search(value)
    return Characteristics(
        turbo_mhz=float(round(float(turbo[1]) * 1000)) if turbo else None,
        turbo_off=True if off else None,
        bus_mts=float(bus[1]) if bus else None,
        complete=bool(off or turbo or bus),
    )
