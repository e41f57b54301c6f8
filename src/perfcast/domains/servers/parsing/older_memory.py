"""Parser of the `Memory` column of 2006 to 2014, before its form was fixed: DDR to DDR3, in any wording.

Examples: `PC2-5300F`, `DDR2-667 FB-DIMM`, `4x1GB Micron, DDR3 1066` and `667 MHz ECC CL5 FB-DIMM`. The text is free, so
complete means that it states capacity, modules and rate.
"""

from __future__ import annotations

import re

from perfcast.domains.servers.parsing.memory import ECC_BY_TYPE, Memory, to_gib
from perfcast.domains.servers.parsing.text_normalization import compile_pattern, extract_first, normalize

GRADES_MTS = (200, 266, 333, 400, 533, 667, 800, 1066, 1333, 1600, 1866)
"""Grades of DDR, DDR2 and DDR3 in MT/s (JESD79, -2, -3)."""

_CAPACITY = compile_pattern(r"^(\d{1,6}(?:\.\d{1,3})?) ?([TGM]B)(?![a-z])")
_GROUP = compile_pattern(r"(?<![\w.])(\d{1,5}) ?[x*] ?(\d{1,5}(?:\.\d{1,2})?) ?([GM]B)(?![a-z])")
_GROUP_REVERSED = compile_pattern(r"(?<![\w.])(\d{1,5}(?:\.\d{1,2})?) ?([GM]B) ?(?:DIMM ?)?[x*] ?(\d{1,5})(?![\w.])")
_RUNNING = compile_pattern(
    r"\b(?:running|downclocked|configured|clocked|runs|operated?s?|operating)(?: at| to)? ?@? ?(\d{3,4}) ?MHz"
)
_LABEL = compile_pattern(r"\bPC(?P<pc>[234])L?[ -]{0,3}(?P<speed>\d{4,5})(?P<type>[a-z]{0,2})(?![a-z0-9])")
_LABEL_BARE = compile_pattern(r"\bPC ?-?(?P<speed>\d{4,5})(?P<type>[a-z]{0,2})(?![a-z0-9])")
_DDR = compile_pattern(r"\bDDR ?-?(?P<pc>[1-4])?(?:[ -]{0,3}(?P<speed>\d{3,5})(?P<type>[a-z]{0,2}))?(?![0-9])")
_CLOCK = compile_pattern(r"(?<![\w.-])(\d{3,4}) ?MHz")
_DEVICE = compile_pattern(r"(?<![\w])(\d)D?Rx(\d{1,2})(?!\w)")
_RANKS = compile_pattern(r"(?<![\w])(?P<number>\d|single|dual|quad)[ -]?rank|(?<![\w])(?P<letter>[SDQ])R(?!\w)")
_RANK_WORDS = {"single": 1, "s": 1, "dual": 2, "d": 2, "quad": 4, "q": 4}
_ECC = compile_pattern(r"\bECC\b")
_NO_ECC = compile_pattern(r"\bnon[ -]?ECC\b|\bno ECC\b")
_KINDS = tuple(
    (letter, compile_pattern(pattern))
    for letter, pattern in (
        ("F", r"\bFB-? ?DIMM|\bfully[ -]buffered"),
        ("L", r"\bLR-?DIMM|\bload[ -]reduced"),
        ("R", r"\bR-?DIMM|\bReg(?:istered|\b)"),
        ("S", r"\bSO-?DIMM"),
        ("U", r"\bU-?DIMM|\bunbuffered\b"),
    )
)
_KIND_LETTERS = {"R": "R", "P": "R", "F": "F", "E": "E", "U": "U", "L": "L", "S": "S"}
"""Letter after a module's number -> type; P is registered with address parity, F fully buffered."""

_ECC_BY_TYPE = {**ECC_BY_TYPE, "F": True}
_MIN_BANDWIDTH = 2000
_FASTEST_DDR = 400
_MIN_OF_GENERATION = {1: 1600, 2: 4200, 3: 8000}
_BYTES_PER_TRANSFER = 8
_TOLERANCE = 0.03


def parse_older_memory(text: str) -> Memory:
    """Parse values such as `16 GB (8 x 2 GB DDR2-5300F ECC)`; of several kinds of module the first with a rate counts.

    Units as in `Memory`. `dimm_type` is F for fully buffered modules besides the letters of later generations.
    """
    value = normalize(text)
    capacity, remainder = extract_first(_CAPACITY, value)
    running, remainder = extract_first(_RUNNING, remainder)
    groups = [(int(count), to_gib(size, unit)) for count, size, unit in _GROUP.findall(remainder)] or [
        (int(count), to_gib(size, unit)) for size, unit, count in _GROUP_REVERSED.findall(remainder)
    ]
    groups = [(count, size) for count, size in groups if count and size]
    main = max(groups, default=None)
    generation, rate, letter = _find_module(remainder)
    kind = letter or next((name for name, pattern in _KINDS if pattern.search(remainder)), None)
    ranks, width = _count_ranks(remainder)
    running_mts = _snap_to_grade(int(running[1])) if running else None
    ecc = _ECC_BY_TYPE[kind] if kind else None
    if _NO_ECC.search(remainder):
        ecc = False
    elif _ECC.search(remainder):
        ecc = True
    return Memory(
        mem_total_gb=to_gib(capacity[1], capacity[2]) if capacity else None,
        mem_sum_gb=sum(count * size for count, size in groups) if groups else None,
        hbm_gb=0.0 if capacity or groups else None,
        dimm_count=sum(count for count, _ in groups) if groups else None,
        dimm_gb=main[1] if main else None,
        dimm_groups=len(groups) if groups else None,
        dimm_ranks=ranks,
        dimm_width=width,
        dimm_type=kind,
        ecc=ecc,
        ddr_gen=generation,
        mem_rated_mts=rate,
        mem_running_mts=running_mts,
        mem_eff_mts=running_mts or rate,
        complete=capacity is not None and bool(groups) and rate is not None,
    )


def _find_module(text: str) -> tuple[int | None, int | None, str | None]:
    """Return generation, rated MT/s and type letter of the first label that has a rate."""
    generation = letter = None
    for match in (*_LABEL.finditer(text), *_LABEL_BARE.finditer(text), *_DDR.finditer(text)):
        fields = match.groupdict()
        stated = int(fields["pc"]) if fields.get("pc") else None
        generation = generation or stated
        letter = letter or _KIND_LETTERS.get((fields["type"] or "")[:1].upper())
        if fields["speed"]:
            number = int(fields["speed"])
            rate = _find_rate(number)
            if rate is not None:
                return stated or generation or _find_generation(number), rate, letter
    clock = _CLOCK.search(text)
    rate = _find_rate(int(clock[1])) if clock else None
    if generation is None and rate is not None and _KINDS[0][1].search(text):
        generation = 2
    return generation, rate, letter


def _find_generation(number: int) -> int | None:
    """Return the DDR generation by the bandwidth in MB/s, or by a rate that only the first generation has."""
    if number <= _FASTEST_DDR:
        return 1
    fitting = [generation for generation, low in _MIN_OF_GENERATION.items() if number >= low]
    return fitting[-1] if fitting else None


def _find_rate(number: int) -> int | None:
    """Return the MT/s of a label's number, which is MB/s from 2000 upwards; None where it is no grade."""
    mts = number / _BYTES_PER_TRANSFER if number >= _MIN_BANDWIDTH else float(number)
    snapped = _snap_to_grade(mts)
    return snapped if snapped in GRADES_MTS else None


def _snap_to_grade(mts: float) -> int:
    nearest = min(GRADES_MTS, key=lambda grade: abs(grade - mts))
    return nearest if abs(nearest - mts) <= _TOLERANCE * nearest else round(mts)


def _count_ranks(text: str) -> tuple[int | None, int | None]:
    device = _DEVICE.search(text)
    if device:
        return int(device[1]), int(device[2])
    match: re.Match[str] | None = _RANKS.search(text)
    if match is None:
        return None, None
    word = (match["number"] or match["letter"]).lower()
    return (int(word) if word.isdigit() else _RANK_WORDS[word]) or None, None
