"""The `CPU(s) Orderable` column: which numbers of chips a system can be ordered with."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.parsing.text import compile_pattern, normalize, take, take_all, used_up

_CORES = compile_pattern(r";[\d,. ]{1,60}cores?\b")
_RANGE = compile_pattern(r"(?<!\w)(\d{1,3}) ?(?:-|\bto\b) ?(\d{1,3})(?!\w)")
_COUNT = compile_pattern(r"(?<!\w)\d{1,3}(?!\w)")
_WORDS = compile_pattern(r"\bor\b|\b(?:cpu )?[cx]hips?\b|\(s\)|\)s(?!\w)|\bCMIOUs?\b|\(on host\)")


@dataclass(frozen=True)
class Orderable:
    """Orderable chips: least, most, and every count; a range stands for all counts in it."""

    orderable_min: int | None = None
    orderable_max: int | None = None
    counts: tuple[int, ...] = ()
    complete: bool = False


def parse_orderable(text: str) -> Orderable:
    """Parse values such as `1,2 chips`, `1, 2, 4 chip(s)` or `4 to 16 chips`."""
    _, remainder = take(_CORES, normalize(text))
    ranges, remainder = take_all(_RANGE, remainder)
    listed, remainder = take_all(_COUNT, remainder)
    _, remainder = take_all(_WORDS, remainder)
    numbers = {int(match[0]) for match in listed}
    for match in ranges:
        low, high = sorted((int(match[1]), int(match[2])))
        numbers.update(range(low, high + 1))
    counts = tuple(sorted(numbers - {0}))
    if not counts:
        return Orderable()
    return Orderable(counts[0], counts[-1], counts, complete=0 not in numbers and used_up(remainder))
