"""Parser of the `Memory` column: capacity, groups of modules, and transfer rates snapped to the JEDEC grades."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    extract_all,
    extract_first,
    is_consumed,
    normalize,
)

ECC_BY_TYPE: dict[str, bool | None] = {"R": True, "L": True, "E": True, "M": True, "U": False, "S": None}
"""Module type letter -> error correction: registered, load-reduced, unbuffered with and without ECC, SO-DIMM
(either), multiplexed-rank."""

JEDEC_MTS = (800, 1066, 1333, 1600, 1866, 2133, 2400, 2667, 2933, *range(3200, 9201, 400))
"""Grades of DDR3, DDR4 and DDR5 in MT/s (JESD79-3, -4, -5)."""

_MIN_BANDWIDTH = {3: 6400, 4: 12800, 5: 25600}
_BYTES_PER_TRANSFER = 8
_FASTEST_DDR4 = 3200

_GB_PER = {"MB": 1 / 1024, "GB": 1.0, "TB": 1024.0}
_CAPACITY = compile_pattern(r"^(\d{1,6}(?:\.\d{1,3})?) ?([TGM]B)\b")
_GROUP = compile_pattern(
    r"\b(?P<count>\d{1,5}) ?x ?(?P<size>\d{1,5}(?:\.\d{1,3})?) ?(?P<unit>[TGM]B)\b ?"
    r"(?:(?P<hbm>HBM[0-9]?E?)\b|"
    r"(?P<sdram>SDRAM)\b(?P<registered> Registered)?|"
    r"(?:(?P<ranks>\d{1,2})(?:S(?P<stack>\d)|D)?Rx(?P<width>\d{1,2})\b)? ?"
    r"(?:PC(?P<pc>\d)L? ?- ?(?P<speed>\d{2,5})(?P<slower>/\d{2,5})?(?P<bin>[A-Z]{0,3})\b"
    r"(?:-(?:(?P<type>[A-Z])|\d{1,2})\b)?)?)"
)
_RUNNING = compile_pattern(r"\b(?:running|configured) at ?(\d{3,5})(?: ?(?:MHz|MT/s))?(?!\w)")
_TAIL = compile_pattern(
    r"\borderable using [\w#. -]{1,60}|\b\d{1,3}-way interleaved\b|\bpopulated on [\w ]{1,60}|\bECC\b|\b\d{2,3}-pin\b"
)


@dataclass(frozen=True)
class ModuleGroup:
    """Equal modules of one system, DIMMs or HBM stacks.

    Units: `size_gb` GiB, `rated_mts` MT/s. `ranks` counts package ranks times stacked dies (2S2R is 4).
    """

    count: int
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
    ranks, width and type are those of the largest group. `mem_rated_mts` is the slowest group's,
    `mem_eff_mts` the running rate or else the rated one.
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
    groups: tuple[ModuleGroup, ...] = ()
    complete: bool = False


def parse_memory(text: str) -> Memory:
    """Parse values such as `96 GB (6 x 16 GB 1Rx4 PC4-2933Y-R, running at 2666)`."""
    capacity, remainder = extract_first(_CAPACITY, normalize(text))
    matches, remainder = extract_all(_GROUP, remainder)
    running, remainder = extract_first(_RUNNING, remainder)
    _, remainder = extract_all(_TAIL, remainder)

    groups = tuple(map(_parse_group, matches))
    dimms = [group for group in groups if not group.hbm]
    main = max(dimms, key=lambda group: group.count, default=None)
    rates = [group.rated_mts for group in dimms if group.rated_mts is not None]
    rated = min(rates, default=None)
    running_mts = snap_to_grade(int(running[1])) if running else None
    return Memory(
        mem_total_gb=to_gib(capacity[1], capacity[2]) if capacity else None,
        mem_sum_gb=_sum_gb(groups) if groups else None,
        hbm_gb=_sum_gb(group for group in groups if group.hbm) if groups else None,
        dimm_count=sum(group.count for group in dimms) if groups else None,
        dimm_gb=main.size_gb if main else None,
        dimm_groups=len(dimms) if groups else None,
        dimm_ranks=main.ranks if main else None,
        dimm_width=main.width if main else None,
        dimm_type=main.dimm_type if main else None,
        ecc=ECC_BY_TYPE[main.dimm_type] if main and main.dimm_type else None,
        ddr_gen=main.ddr_gen if main else None,
        mem_rated_mts=rated,
        mem_running_mts=running_mts,
        mem_eff_mts=running_mts or rated,
        groups=groups,
        complete=capacity is not None and is_consumed(remainder) and all(map(_is_complete, matches, groups)),
    )


def to_gib(number: str, unit: str) -> float:
    """Convert a size in MB, GB or TB to GiB."""
    return float(number) * _GB_PER[unit.upper()]


def find_ddr_generation(label: int, number: int) -> int | None:
    """Return the DDR generation of a label PC<label>-<number>; None for generations before DDR3 or after DDR5.

    A PC4 label with a rate that only DDR5 reaches is a misprint of PC5.
    """
    if label == 4 and _FASTEST_DDR4 < number < _MIN_BANDWIDTH[4]:
        return 5
    return label if label in _MIN_BANDWIDTH else None


def convert_label_rate(generation: int, number: int) -> int:
    """Return the rated MT/s of a module label's number.

    The number is module bandwidth in MB/s (8 bytes per transfer) from the smallest bandwidth of its generation
    upwards and MT/s below: one threshold for all generations would misread multiplexed-rank DDR5 (12800 MT/s).
    """
    if number >= _MIN_BANDWIDTH[generation]:
        return snap_to_grade(number / _BYTES_PER_TRANSFER, tolerance=10)
    return snap_to_grade(number)


def snap_to_grade(mts: float, tolerance: float = 2) -> int:
    """Return the JEDEC grade within `tolerance` MT/s (labels round 2666.67 either way), else the rounded number."""
    nearest = min(JEDEC_MTS, key=lambda grade: abs(grade - mts))
    return nearest if abs(nearest - mts) <= tolerance else round(mts)


def _parse_group(match: re.Match[str]) -> ModuleGroup:
    generation = rate = None
    if match["speed"]:
        # A pair such as 88/56 gives two rates in hundreds of MT/s; the first is the faster mode.
        number = int(match["speed"]) * (100 if match["slower"] and len(match["speed"]) < 3 else 1)
        generation = find_ddr_generation(int(match["pc"]), number)
        rate = convert_label_rate(generation, number) if generation else None
    return ModuleGroup(
        count=int(match["count"]),
        size_gb=to_gib(match["size"], match["unit"]),
        hbm=match["hbm"] is not None,
        ranks=int(match["ranks"]) * int(match["stack"] or 1) if match["ranks"] else None,
        width=int(match["width"]) if match["width"] else None,
        ddr_gen=generation,
        rated_mts=rate,
        dimm_type=_find_type(match),
    )


def _find_type(match: re.Match[str]) -> str | None:
    letter = match["type"]
    if letter is None and match["registered"]:
        letter = "R"
    if letter is None and match["pc"] == "3":
        # PC3 labels put the type where later generations put the latency bin: PC3-12800R-11.
        letter = match["bin"]
    letter = (letter or "").upper()
    return letter if letter in ECC_BY_TYPE else None


def _is_complete(match: re.Match[str], group: ModuleGroup) -> bool:
    """Return whether a group states its kind of module, without an unknown letter or generation."""
    if match["hbm"] or match["sdram"]:
        return True
    return group.ddr_gen is not None and (match["type"] is None or group.dimm_type is not None)


def _sum_gb(groups: Iterable[ModuleGroup]) -> float:
    return sum((group.count * group.size_gb for group in groups), start=0.0)
