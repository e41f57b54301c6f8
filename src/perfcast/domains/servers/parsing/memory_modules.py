"""Parsers of memory in two columns: number and size of the modules, and their kind."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.domains.servers.parsing.memory import ECC_BY_TYPE, convert_label_rate, find_ddr_generation, snap_to_grade
from perfcast.domains.servers.parsing.text_normalization import compile_pattern, extract_all, is_consumed, normalize

_GROUP = compile_pattern(r"\b(\d{1,4}) ?x ?(\d{1,6}) ?([GM])B?\b")
_TAIL = compile_pattern(r"\b\d{1,2}D?Rx\d{1,2}\b|\bPC\d-\w{1,10}\b|\band\b|\bDIMMs?\b")
_RANKS = compile_pattern(r"(?<![\w.])(\d{1,2})(?:S(\d)|D)?Rx(\d{1,2})\b|\b(\d) ?rank\b")
_LABEL = compile_pattern(
    r"\bPC(?:L?(?P<gen>[2-5])(?:LV?)?)?[ -]{1,3}(?P<speed>\d{2,5})(?P<slower>/\d{2,5})?(?P<bin>[A-Z]{0,2})"
    r"(?:-(?P<type>[RLEUSMH])[A-Z]?\d{0,2}\b)?"
)
_NAMED = compile_pattern(r"\bDDR(?P<gen>[2-5])(?:[^\d/]{1,40}?| ?)(?P<speed>\d{3,5})(?:[A-Z]{0,2}\b| ?M[HT])")
_GENERATION = compile_pattern(r"\bDDR([2-5])\b|\bPC([2-5])\b")
_RATE = compile_pattern(r"\b(\d{3,5})(?: ?MHz| ?MT/s|ER\b)")
_RUNNING = compile_pattern(r"\brunning (?:at|@) ?(\d{3,5})")
_WORDS = (
    (compile_pattern(r"\bMRDIMM\b"), "M"),
    (compile_pattern(r"\bLR-?DIMM\b|\bload[- ]reduced\b"), "L"),
    (compile_pattern(r"\bFB-?DIMM\b"), "F"),
    (compile_pattern(r"\bunbuffered\b|\bunregistered\b|\bU-?DIMM\b"), "U"),
    (compile_pattern(r"\bSO-?DIMM\b"), "S"),
    (compile_pattern(r"\bR-?DIMM\b|\bregistered\b|\bREG\b"), "R"),
)
_ECC = compile_pattern(r"\bECC\b")
_DDR2 = {3200: 400, 4200: 533, 5300: 667, 6400: 800}
"""Module bandwidth in MB/s -> MT/s of DDR2 (JESD79-2)."""

_FASTEST = {3: 2133, 4: 3200, 5: 9200}
_LARGEST_DIMM_GB = 512
_TYPO = 0.01


@dataclass(frozen=True)
class Dimms:
    """Modules of one system. Units: GiB; `dimm_gb` is the size in the largest group."""

    dimm_count: int | None = None
    dimm_gb: float | None = None
    dimm_groups: int | None = None
    mem_sum_gb: float | None = None
    complete: bool = False


@dataclass(frozen=True)
class Module:
    """Module as described; None for what the text omits.

    Units: MT/s. `ranks` count stacked dies. `dimm_type` is a letter of `memory.ECC_BY_TYPE`, or F for fully buffered.
    """

    dimm_ranks: int | None = None
    dimm_width: int | None = None
    dimm_type: str | None = None
    ecc: bool | None = None
    ddr_gen: int | None = None
    mem_rated_mts: int | None = None
    mem_running_mts: int | None = None
    mem_eff_mts: int | None = None
    complete: bool = False


def parse_dimms(text: str) -> Dimms:
    """Parse values such as `12 x 16384 MB` or `6 x 2 GB, 6 x 1 GB`; sizes near a power of two are snapped to it."""
    matches, remainder = extract_all(_GROUP, normalize(text))
    groups = [(int(match[1]), _to_gib(int(match[2]), match[3].upper())) for match in matches if int(match[1])]
    if not groups:
        return Dimms()
    return Dimms(
        dimm_count=sum(count for count, _ in groups),
        dimm_gb=max(groups)[1],
        dimm_groups=len(groups),
        mem_sum_gb=sum(count * size for count, size in groups),
        complete=is_consumed(_TAIL.sub(" ", remainder)),
    )


def parse_module(text: str) -> Module:
    """Parse values such as `16GB 2Rx8 PC4-2933Y-R, running at 2666; slots 1-6 populated`."""
    value = normalize(text.replace("_", " "))
    ranks, label = _RANKS.search(value), _LABEL.search(value)
    running = _RUNNING.search(value)
    generation, rated = _find_speed(label, _RUNNING.sub(" ", value))
    kind = _find_type(label, generation, value)
    running_mts = snap_to_grade(int(running[1])) if running else None
    return Module(
        dimm_ranks=_count_ranks(ranks),
        dimm_width=int(ranks[3]) if ranks and ranks[3] else None,
        dimm_type=kind,
        ecc=True if _ECC.search(value) or kind == "F" else ECC_BY_TYPE.get(kind or ""),
        ddr_gen=generation,
        mem_rated_mts=rated,
        mem_running_mts=running_mts,
        mem_eff_mts=running_mts or rated,
        complete=generation is not None and rated is not None,
    )


def _to_gib(number: int, unit: str) -> float:
    # "2048 GB" modules are megabytes with the wrong unit; 8196 and 32678 MB are mistyped powers of two.
    gb = number / 1024 if unit == "M" or number > _LARGEST_DIMM_GB else float(number)
    power = 2.0 ** round(gb).bit_length()
    near = min((power / 2, power), key=lambda size: abs(size - gb))
    return near if abs(gb / near - 1) < _TYPO else gb


def _count_ranks(match: re.Match[str] | None) -> int | None:
    if match is None:
        return None
    return int(match[4]) if match[4] else int(match[1]) * int(match[2] or 1)


def _find_speed(label: re.Match[str] | None, text: str) -> tuple[int | None, int | None]:
    """Return DDR generation and rated MT/s: of a label PC4-2933, else of words such as DDR4 2933 MHz."""
    if label is not None and label["gen"] is not None:
        number = int(label["speed"]) * (100 if label["slower"] and len(label["speed"]) < 3 else 1)
        return _convert_label(int(label["gen"]), number)
    named = _NAMED.search(text)
    if named is not None:
        return _convert_label(int(named["gen"]), int(named["speed"]))
    generation, rate = _GENERATION.search(text), _RATE.search(text)
    return int(generation[1] or generation[2]) if generation else None, snap_to_grade(int(rate[1])) if rate else None


def _convert_label(label: int, number: int) -> tuple[int | None, int | None]:
    if label == 2:
        return 2, _DDR2.get(number, number if number in _DDR2.values() else None)
    generation = find_ddr_generation(label, number)
    if generation is None:
        return None, None
    rate = convert_label_rate(generation, number)
    # "PC4-32003" is 3200 with a digit of the next word.
    return generation, rate if rate <= _FASTEST[generation] or number < 10_000 else snap_to_grade(int(str(number)[:4]))


def _find_type(label: re.Match[str] | None, generation: int | None, text: str) -> str | None:
    letter = label["type"] if label else None
    if letter is None and label and generation in (2, 3):
        # Labels before DDR4 put the type where later ones put the latency bin: PC3L-10600R.
        letter = label["bin"][:1] or None
    letter = {"P": "R", "H": "M"}.get((letter or "").upper(), (letter or "").upper())
    if letter in {*ECC_BY_TYPE, "F"}:
        return letter
    return next((kind for pattern, kind in _WORDS if pattern.search(text)), None)
