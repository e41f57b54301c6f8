"""Parser of the memory modules in the output of `dmidecode -t memory`, without serial numbers and tags.

Source of the fields: DMTF, System Management BIOS Reference Specification (DSP0134), structures of type 16 and 17.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perfcast.data.parsing.memory import snap_to_grade

_FIELDS = frozenset(
    {
        "Configured Clock Speed",
        "Configured Memory Speed",
        "Data Width",
        "Error Correction Type",
        "Form Factor",
        "Memory Technology",
        "Rank",
        "Size",
        "Speed",
        "Total Width",
        "Type",
        "Type Detail",
        "Use",
    }
)
"""Privacy filter: all other fields are dropped, among them vendors, part and serial numbers, tags and locations."""

_SIZE = re.compile(r"(\d{1,9}) ?([kMGT])i?B\b", re.ASCII)
_GIB_PER = {"k": 1 / 1024**2, "M": 1 / 1024, "G": 1.0, "T": 1024.0}
_RATE = re.compile(r"(\d{1,6}) ?(?:MT/s|MHz)", re.ASCII)
_DDR = re.compile(r"DDR([2-9])\b", re.ASCII)
_BITS = re.compile(r"(\d{1,4}) bits", re.ASCII)
_RANK = re.compile(r"[1-9]\d?", re.ASCII)
_NOT_VOLATILE = re.compile(r"non-volatile|flash|persistent|NVDIMM-[FP]", re.IGNORECASE)
_SOLDERED = re.compile(r"LPDDR|Row Of Chips|\bDie\b|\bChip\b", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Module:
    """One installed memory device; None for values that the firmware does not have.

    Units: GiB, MT/s. `dimm_type` is a letter of `parsing.memory.ECC_BY_TYPE`. Not DIMMs: `soldered` chips,
    high-bandwidth memory (`hbm`) of the processor package, and memory without a DDR generation.
    """

    size_gib: float
    ddr_gen: int | None = None
    rated_mts: int | None = None
    running_mts: int | None = None
    ranks: int | None = None
    dimm_type: str | None = None
    check_bits: bool | None = None
    soldered: bool = False
    hbm: bool = False


@dataclass(frozen=True)
class Memory:
    """Modules in the printed order, and whether they have ECC; None if unknown."""

    modules: tuple[Module, ...]
    ecc: bool | None = None


def parse_memory(text: str) -> Memory:
    """Parse the output of `dmidecode -t memory`; unknown text is ignored."""
    modules: list[Module] = []
    ecc: bool | None = None
    for name, values in _iterate_structures(text):
        if name == "Memory Device":
            module = _module(values)
            if module is not None:
                modules.append(module)
        elif name == "Physical Memory Array" and values.get("Use", "System Memory") == "System Memory":
            kind = values.get("Error Correction Type", "")
            # a board with several arrays has ECC if one of them has
            ecc = True if "ECC" in kind or ecc else False if kind == "None" else ecc
    if ecc is None and modules:
        check_bits = {module.check_bits for module in modules}
        ecc = None if len(check_bits) > 1 else check_bits.pop()
    return Memory(tuple(modules), ecc)


def _iterate_structures(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name and the filtered values of each structure."""
    name, values = "", dict[str, str]()
    for line in text.splitlines():
        if line[:1].isspace():
            key, colon, value = line.strip().partition(":")
            if colon and key in _FIELDS:
                values.setdefault(key, value.strip())
        elif line.strip() and not line.startswith(("Handle ", "#")):
            yield name, values
            name, values = line.strip(), {}
    yield name, values


def _module(values: dict[str, str]) -> Module | None:
    size = _SIZE.match(values.get("Size", ""))
    words = " ".join(values.get(key, "") for key in ("Type", "Type Detail", "Memory Technology"))
    if size is None or int(size[1]) == 0 or _NOT_VOLATILE.search(words):
        return None
    generation = _DDR.search(values.get("Type", ""))
    total, data = (_BITS.match(values.get(key, "")) for key in ("Total Width", "Data Width"))
    check_bits = int(total[1]) > int(data[1]) if total and data else None
    rank = _RANK.fullmatch(values.get("Rank", ""))
    return Module(
        size_gib=int(size[1]) * _GIB_PER[size[2]],
        ddr_gen=int(generation[1]) if generation else None,
        rated_mts=_parse_rate(values.get("Speed", "")),
        running_mts=_parse_rate(values.get("Configured Memory Speed", ""))
        or _parse_rate(values.get("Configured Clock Speed", "")),
        ranks=int(rank[0]) if rank else None,
        dimm_type=_type(f"{words} {values.get('Form Factor', '')}", check_bits),
        check_bits=check_bits,
        soldered=_SOLDERED.search(f"{values.get('Type', '')} {values.get('Form Factor', '')}") is not None,
        hbm=values.get("Type", "").startswith("HBM"),
    )


def _parse_rate(text: str) -> int | None:
    match = _RATE.match(text)
    return snap_to_grade(int(match[1])) if match and int(match[1]) else None


def _type(words: str, check_bits: bool | None) -> str | None:
    """Return the letter of the module type; unbuffered modules differ by their check bits."""
    if re.search(r"MR-?DIMM|Multiplexed", words, re.IGNORECASE):
        return "M"
    if re.search(r"SO-?DIMM", words, re.IGNORECASE):
        return "S"
    if re.search(r"LR-?DIMM|Load[- ]Reduced", words, re.IGNORECASE):
        return "L"
    # the word boundary excludes 'Unregistered'
    if re.search(r"\bRegistered\b", words, re.IGNORECASE):
        return "R"
    if re.search(r"\bUn(?:buffered|registered)\b", words, re.IGNORECASE) and check_bits is not None:
        return "E" if check_bits else "U"
    return None
