"""Parsers of memory in published results: capacity, modules, and transfer rates snapped to the JEDEC grades.

The texts have three forms. That of CPU2017 is fixed: `384 GB (12 x 32 GB 2Rx4 PC4-2933Y-R, running at 2666)`. The Java
benchmarks have two columns, number and kind of the modules. People and configurators write `24x 64GB RDIMM, 5600MT/s`,
`64 GB DDR5-4800 x 16` or `12 DIMMs of 32 GB`: such texts are rewritten piece by piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    extract_all,
    extract_first,
    find_kind,
    is_consumed,
    normalize,
    read_rules,
    rewrite,
)

ECC_BY_TYPE: dict[str, bool | None] = {
    "R": True,
    "L": True,
    "E": True,
    "M": True,
    "F": True,
    "U": False,
    "S": None,
}
"""Module type letter -> error correction: registered, load-reduced, unbuffered with ECC, multiplexed-rank, fully
buffered; unbuffered without ECC, SO-DIMM (either)."""

JEDEC_MTS = (
    800,
    1066,
    1333,
    1600,
    1866,
    2133,
    2400,
    2667,
    2933,
    *range(3200, 9201, 400),
)
"""Grades of DDR3, DDR4 and DDR5 in MT/s (JESD79-3, -4, -5)."""


_DDR2_MTS = {3200: 400, 4200: 533, 5300: 667, 6400: 800}
"""Module bandwidth in MB/s -> MT/s of DDR2 (JESD79-2)."""

_MIN_BANDWIDTH = {3: 6400, 4: 12800, 5: 25600}
_FASTEST = {3: 2133, 4: 3200, 5: 9200}
_BYTES_PER_TRANSFER = 8
_LARGEST_DIMM_GB = 512
_TYPO = 0.01

_GB_PER = {"MB": 1 / 1024, "GB": 1.0, "TB": 1024.0}
_CAPACITY = compile_pattern(r"^(\d{1,6}(?:\.\d{1,3})?) ?([TGM]B)(?![a-z])")
_GROUP = compile_pattern(
    r"\b(?P<count>\d{1,5}) ?x ?(?P<size>\d{1,5}(?:\.\d{1,3})?) ?(?P<unit>[TGM]B)\b ?"
    r"(?:(?P<hbm>HBM[0-9]?E?)\b|"
    r"(?P<sdram>SDRAM)\b(?P<registered> Registered)?|"
    r"(?:(?P<ranks>\d{1,2})(?:S(?P<stack>\d)|D)?Rx(?P<width>\d{1,2})\b)? ?"
    r"(?:PC(?P<pc>\d)L? ?- ?(?P<speed>\d{2,5})(?P<slower>/\d{2,5})?(?P<bin>[A-Z]{0,3})\b"
    r"(?:-(?:(?P<type>[A-Z])|\d{1,2})\b)?)?)"
)
_RUNNING = compile_pattern(r"\b(?:running|configured) at ?(\d{3,5})(?: ?(?:MHz|MT/s))?(?!\w)")

_DIMMS = compile_pattern(r"\b(\d{1,4}) ?x ?(\d{1,6}) ?([GM])B?\b")
_MODULE_RANKS = compile_pattern(r"(?<![\w.])(\d{1,2})(?:S(\d)|D)?Rx(\d{1,2})\b|\b(\d) ?rank\b")
_MODULE_LABEL = compile_pattern(
    r"\bPC(?:L?(?P<pc>[2-5])(?:LV?)?)?[ -]{1,3}(?P<speed>\d{2,5})(?P<slower>/\d{2,5})?(?P<bin>[A-Z]{0,2})"
    r"(?:-(?P<type>[RLEUSMH])[A-Z]?\d{0,2}\b)?"
)
_NAMED = compile_pattern(r"\bDDR(?P<gen>[2-5])(?:[^\d/]{1,40}?| ?)(?P<speed>\d{3,5})(?:[A-Z]{0,2}\b| ?M[HT])")
_GENERATION = compile_pattern(r"\bDDR([2-5])\b|\bPC([2-5])\b")
_RATE = compile_pattern(r"\b(\d{3,5})(?: ?MHz| ?MT/s|ER\b)")
_MODULE_RUNNING = compile_pattern(r"\brunning (?:at|@) ?(\d{3,5})")
_KINDS = read_rules("module types")
_ECC = compile_pattern(r"(?<!non[ -])\bECC\b")


_REWRITES = read_rules("described memory")
"""Wordings of people and configurators -> those of the patterns below, applied in order."""
_SIZE = r"(\d{1,5}(?:\.\d{1,3})?) ?([GMT]B)"
_KIND = r"(?:(?:MR|LR|R|U|SO|FB)?-?DIMMs?|modules?|sticks?)"
_TIMES = compile_pattern(rf"(?<![\w.])(\d{{1,15}}) ?(?:x|{_KIND}(?: of)?) ?{_SIZE}(?![a-z])")
_BY = compile_pattern(rf"(?<![\w.]){_SIZE}(?![a-z]).{{0,80}}?\b(x ?(\d{{1,4}}))(?![\w.])")
_OUTER = compile_pattern(r"^ ?(\d{1,4}) ?x ?(?=[a-z(])")
_ALONE = compile_pattern(rf"(?<![\w.]){_SIZE}(?![a-z])")
_DDR = compile_pattern(r"\bDDR([2-5])(?!\d)")
_PIECES = compile_pattern(
    r"\bPC ?[2-5]?L?V?[ -]{0,3}\d{2,5}(?:/\d{2,5})?[A-Z]{0,3}(?:-[A-Z0-9]{1,4}){0,4}(?![a-z0-9])"
    r"|\bDDR[2-5]?[a-z]?(?:[ -]{0,3}\d{3,5}[A-Z]{0,3})?(?![a-z0-9])|\brunning (?:at|@) ?\d{3,5}|\b\d{3,5} ?(?:MT/s|MHz)"
    r"|\b\d{1,2}(?:S\d|D)?Rx\d{1,2}\b|\b\d rank\b|\bCL ?\d{1,2}(?:-\d{1,2}){0,3}\b|\bCAS(?:-\d{1,2}){0,4}\b"
    r"|\bEC\d\b|\b1\.\d{1,2} ?V\b|\b\d{3}-pin\b"
)
_SLOWEST_DDR5 = 4800


class _Group(NamedTuple):
    """Equal modules of one system, DIMMs or HBM stacks.

    Units: `size_gb` GiB, `rated_mts` MT/s. `ranks` counts package ranks times stacked dies (2S2R is 4).
    """

    modules: int
    size_gb: float
    hbm: bool
    ranks: int | None
    width: int | None
    ddr_gen: int | None
    rated_mts: int | None
    dimm_type: str | None


@dataclass(frozen=True)
class Memory:
    """Memory as stated; None for what the text omits.

    Units: `*_gb` GiB, `*_mts` MT/s. `mem_total_gb` is the stated capacity, `mem_sum_gb` count times size of all
    groups; both include HBM. `dimm_*` leave HBM out: count over all DIMM groups, `dimm_groups` their number; size,
    ranks, width and type are those of the largest group, the type a letter of ECC_BY_TYPE. `mem_rated_mts` is the
    slowest group's, `mem_eff_mts` the running rate or else the rated one.
    """

    mem_total_gb: float | None = None
    mem_sum_gb: float | None = None
    hbm_gb: float | None = None
    dimm_count: int | None = None
    dimm_gb: float | None = None
    dimm_groups: int | None = None
    dimm_ranks: int | None = None
    dimm_width: int | None = None
    dimm_type: str | None = None
    ecc: bool | None = None
    ddr_gen: int | None = None
    mem_rated_mts: int | None = None
    mem_running_mts: int | None = None
    mem_eff_mts: int | None = None
    complete: bool = False


def parse_memory(text: str) -> Memory:
    """Parse values such as `96 GB (6 x 16 GB 1Rx4 PC4-2933Y-R, running at 2666)`."""
    capacity, remainder = extract_first(_CAPACITY, normalize(text))
    matches, remainder = extract_all(_GROUP, remainder)
    running, remainder = extract_first(_RUNNING, remainder)
    groups = tuple(map(_parse_group, matches))
    dimms = [group for group in groups if not group.hbm]
    main = max(dimms, key=lambda group: group.modules, default=None)
    counted: dict[str, Any] = {}
    if groups:
        counted = {
            "mem_sum_gb": sum((group.modules * group.size_gb for group in groups), start=0.0),
            "hbm_gb": sum((group.modules * group.size_gb for group in groups if group.hbm), start=0.0),
            "dimm_count": sum(group.modules for group in dimms),
            "dimm_groups": len(dimms),
        }
    return Memory(
        mem_total_gb=to_gib(capacity[1], capacity[2]) if capacity else None,
        **counted,
        dimm_gb=main.size_gb if main else None,
        dimm_ranks=main.ranks if main else None,
        dimm_width=main.width if main else None,
        dimm_type=main.dimm_type if main else None,
        ecc=ECC_BY_TYPE[main.dimm_type] if main and main.dimm_type else None,
        ddr_gen=main.ddr_gen if main else None,
        **_rates(
            min((group.rated_mts for group in dimms if group.rated_mts is not None), default=None),
            snap_to_grade(int(running[1])) if running else None,
        ),
        complete=capacity is not None and is_consumed(remainder) and all(map(_is_complete, matches, groups)),
    )


def parse_dimms(text: str) -> Memory:
    """Parse values such as `12 x 16384 MB` or `6 x 2 GB, 6 x 1 GB`; sizes near a power of two are snapped to it."""
    listed = _DIMMS.findall(normalize(text))
    groups = [(int(count), _snap_size(int(size), unit.upper())) for count, size, unit in listed if int(count)]
    return Memory(**_count_modules(groups))


def parse_module(text: str) -> Memory:
    """Parse values such as `16GB 2Rx8 PC4-2933Y-R, running at 2666; slots 1-6 populated`: the kind, no capacity."""
    value = normalize(text.replace("_", " "))
    ranks = _MODULE_RANKS.search(value)
    label = _MODULE_LABEL.search(value)
    running = _MODULE_RUNNING.search(value)
    generation, rated = _find_speed(label, _MODULE_RUNNING.sub(" ", value))
    kind = _find_kind(label, generation, value)
    return Memory(
        dimm_ranks=int(ranks[4] or int(ranks[1]) * int(ranks[2] or 1)) if ranks else None,
        dimm_width=int(ranks[3]) if ranks and ranks[3] else None,
        dimm_type=kind,
        ecc=True if _ECC.search(value) else ECC_BY_TYPE.get(kind or ""),
        ddr_gen=generation,
        **_rates(rated, snap_to_grade(int(running[1])) if running else None),
    )


def parse_described_memory(text: str) -> Memory:
    """Parse memory of any DDR generation as people write it; complete where no number of the text was left over.

    The form of published results is tried first. A capacity that differs from the modules is left out.
    """
    stated = parse_memory(text)
    if not stated.complete:
        stated = _parse_words(text)
    modules = stated.mem_sum_gb
    total = stated.mem_total_gb
    if modules is not None and total is not None and abs(modules - total) > 0.02 * total:
        return replace(stated, mem_total_gb=modules, complete=False)
    return stated


def _parse_words(text: str) -> Memory:
    value = rewrite(text, _REWRITES)
    outer = _OUTER.match(value)
    times, value = (int(outer[1]), value[outer.end() :]) if outer else (1, value)
    groups = [(times * int(count), to_gib(size, unit)) for count, size, unit in _TIMES.findall(value)]
    remainder = _TIMES.sub(" ", value)
    if not groups and (match := _BY.search(value)):
        groups = [(times * int(match[4]), to_gib(match[1], match[2]))]
        between = value[match.end(2) : match.start(3)]
        remainder = f"{value[: match.start()]} {between} {value[match.end() :]}"
    if any(count == 0 for count, _ in groups):
        return Memory()
    alone, remainder = extract_all(_ALONE, remainder)
    total = to_gib(alone[0][1], alone[0][2]) if alone else None
    module = parse_module(value)
    size = None
    named = not groups and total is not None and total <= _LARGEST_DIMM_GB and (outer or module.dimm_ranks)
    # the name of a kit of one module, such as 64GB (1x64GB), does not tell how many kits there are
    if total is not None and (named or groups == [(times, total)]):
        groups = [(times, total)] if outer else []
        size = total
        total = None
    counted = {"hbm_gb": 0.0, **_count_modules(groups)} if groups else {"dimm_gb": size}
    generation = module.ddr_gen
    if match := _DDR.search(value):  # a rate of another generation is no reason to doubt the name
        generation = int(match[1])
    elif generation is None and (module.dimm_type == "M" or (module.mem_rated_mts or 0) >= _SLOWEST_DDR5):
        generation = 5
    is_stated = bool(groups or size or total or generation)
    return replace(
        module,
        **counted,
        ddr_gen=generation,
        mem_total_gb=total or counted.get("mem_sum_gb"),
        complete=is_stated and re.search(r"\d", _PIECES.sub(" ", remainder)) is None,
    )


def _count_modules(groups: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """Return the values of groups (count, GiB of a module); the size is that of the largest group."""
    if not groups:
        return {}
    return {
        "mem_sum_gb": sum(count * size for count, size in groups),
        "dimm_count": sum(count for count, _ in groups),
        "dimm_gb": max(groups)[1],
        "dimm_groups": len(groups),
    }


def _rates(rated: int | None, running: int | None) -> dict[str, Any]:
    return {"mem_rated_mts": rated, "mem_running_mts": running, "mem_eff_mts": running or rated}


def to_gib(number: str, unit: str) -> float:
    """Convert a size in MB, GB or TB to GiB."""
    return float(number) * _GB_PER[unit.upper()]


def convert_label(label: int, number: int) -> tuple[int | None, int | None]:
    """Return DDR generation and rated MT/s of a label PC<label>-<number>; None before DDR2 and after DDR5.

    The number is module bandwidth in MB/s (8 bytes per transfer) from the smallest bandwidth of its generation
    upwards and MT/s below: one threshold for all generations would misread multiplexed-rank DDR5 (12800 MT/s). A PC4
    label with a rate that only DDR5 reaches is a misprint of PC5.
    """
    if label == 2:
        return 2, _DDR2_MTS.get(number, number if number in _DDR2_MTS.values() else None)
    generation = 5 if label == 4 and _FASTEST[4] < number < _MIN_BANDWIDTH[4] else label
    if generation not in _MIN_BANDWIDTH:
        return None, None
    if number >= _MIN_BANDWIDTH[generation]:
        return generation, snap_to_grade(number / _BYTES_PER_TRANSFER, tolerance=10)
    return generation, snap_to_grade(number)


def snap_to_grade(mts: float, tolerance: float = 2) -> int:
    """Return the JEDEC grade within `tolerance` MT/s (labels round 2666.67 either way), else the rounded number."""
    nearest = min(JEDEC_MTS, key=lambda grade: abs(grade - mts))
    return nearest if abs(nearest - mts) <= tolerance else round(mts)


def _read_label_number(match: re.Match[str]) -> int:
    # A pair such as 88/56 gives two rates in hundreds of MT/s; the first is the faster mode.
    return int(match["speed"]) * (100 if match["slower"] and len(match["speed"]) < 3 else 1)


def _parse_group(match: re.Match[str]) -> _Group:
    label = int(match["pc"] or 0)
    generation, rate = convert_label(label, _read_label_number(match)) if label > 2 else (None, None)
    letter = match["type"] or ("R" if match["registered"] else None)
    if letter is None and label == 3:
        # PC3 labels put the type where later generations put the latency bin: PC3-12800R-11.
        letter = match["bin"]
    letter = (letter or "").upper()
    return _Group(
        modules=int(match["count"]),
        size_gb=to_gib(match["size"], match["unit"]),
        hbm=match["hbm"] is not None,
        ranks=int(match["ranks"]) * int(match["stack"] or 1) if match["ranks"] else None,
        width=int(match["width"]) if match["width"] else None,
        ddr_gen=generation,
        rated_mts=rate,
        dimm_type=letter if letter in ECC_BY_TYPE else None,
    )


def _is_complete(match: re.Match[str], group: _Group) -> bool:
    """Return whether a group states its kind of module, without an unknown letter or generation."""
    if match["hbm"] or match["sdram"]:
        return True
    return group.ddr_gen is not None and (match["type"] is None or group.dimm_type is not None)


def _snap_size(number: int, unit: str) -> float:
    # "2048 GB" modules are megabytes with the wrong unit; 8196 and 32678 MB are mistyped powers of two.
    gb = number / 1024 if unit == "M" or number > _LARGEST_DIMM_GB else float(number)
    power = 2.0 ** round(gb).bit_length()
    near = min((power / 2, power), key=lambda size: abs(size - gb))
    return near if abs(gb / near - 1) < _TYPO else gb


def _find_speed(label: re.Match[str] | None, text: str) -> tuple[int | None, int | None]:
    """Return DDR generation and rated MT/s: of a label PC4-2933, else of words such as DDR4 2933 MHz."""
    named = _NAMED.search(text)
    if label is not None and label["pc"] is not None:
        pc = int(label["pc"])
        number = _read_label_number(label)
    elif named is not None:
        pc = int(named["gen"])
        number = int(named["speed"])
    else:
        generation = _GENERATION.search(text)
        rate = _RATE.search(text)
        stated = int(generation[1] or generation[2]) if generation else None
        return stated, snap_to_grade(int(rate[1])) if rate else None
    ddr, mts = convert_label(pc, number)
    # "PC4-32003" is 3200 with a digit of the next word.
    mistyped = ddr in _FASTEST and (mts or 0) > _FASTEST[ddr] and number >= 10_000
    return ddr, snap_to_grade(int(str(number)[:4])) if mistyped else mts


def _find_kind(label: re.Match[str] | None, generation: int | None, text: str) -> str | None:
    letter = label["type"] if label else None
    if letter is None and label and generation in (2, 3):
        # Labels before DDR4 put the type where later ones put the latency bin: PC3L-10600R.
        letter = label["bin"][:1] or None
    letter = {"P": "R", "H": "M"}.get((letter or "").upper(), (letter or "").upper())
    if letter in ECC_BY_TYPE:
        return letter
    return find_kind(_KINDS, text)
