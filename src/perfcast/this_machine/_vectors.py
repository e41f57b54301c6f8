"""Width of the vector units, and the matrix unit, as far as instruction sets tell of them."""

from __future__ import annotations

import re

from perfcast.this_machine import lscpu
from perfcast.this_machine._host import Surroundings
from perfcast.this_machine._part import known_part
from perfcast.this_machine.reading import Gathering

_KERNEL_KNOWS_AMX = (5, 16)
_ZEN_3_OR_4 = "25"
_NAME = "give it, or the processor's name, which tells it"


def read_vectors(gathering: Gathering, fields: lscpu.Fields, around: Surroundings, where: str) -> None:
    """Read simd_bits and has_amx where the flags decide them.

    The columns are about the units of the part; a set of wide instructions may run on units of half the width (AVX-512
    on Zen 4), and a hypervisor may hide instructions.
    """
    flags = set(lscpu.first(fields, "Flags").split())
    if not flags or (around.virtual and known_part(gathering)):
        why = "a hypervisor may hide instructions" if flags else f"{where} lists no instruction sets"
        gathering.miss(["simd_bits", "has_amx"], f"{why}: {_NAME}")
        return
    width = _width(gathering, fields, flags, around)
    if isinstance(width, str):
        gathering.miss(["simd_bits"], f"{width}: {_NAME}")
    else:
        gathering.put("simd_bits", *width, where)
    amx = "amx_tile" in flags
    if amx or _would_show_amx(gathering, around):
        gathering.put("has_amx", amx, "amx_tile" if amx else "no amx_tile among the flags", where)
    gathering.miss(["has_amx"], f"no amx_tile among the flags, but the system may hide it: {_NAME}")


def _width(gathering: Gathering, fields: lscpu.Fields, flags: set[str], around: Surroundings) -> tuple[int, str] | str:
    """Return the width in bits and what tells it, or why nothing does."""
    if gathering.text("isa") == "arm":
        if {"sve", "sve2"} & flags:
            return "the width of SVE is not among the flags"
        return (128, "asimd") if "asimd" in flags else "no vector instructions are listed"
    vendor = gathering.text("cpu_vendor")
    if vendor == "Intel":
        return _width_of_intel(flags, around)
    if vendor == "AMD" and lscpu.first(fields, "CPU family") == _ZEN_3_OR_4 and "avx2" in flags:
        return 256, "AMD family 25 (Zen 3 and Zen 4)"
    return "units may be narrower than the instructions"


def _width_of_intel(flags: set[str], around: Surroundings) -> tuple[int, str] | str:
    if "avx512f" in flags:
        return 512, "avx512f"
    if around.virtual:
        return "a hypervisor may hide instructions"
    if "avx_vnni" in flags:
        return "performance cores have units of 256 bits, efficiency cores of 128"
    return (256, "avx2" if "avx2" in flags else "avx") if "avx" in flags else "there is no AVX"


def _would_show_amx(gathering: Gathering, around: Surroundings) -> bool:
    if gathering.text("isa") != "x86" or gathering.text("cpu_vendor") == "AMD":
        return gathering.text("isa") is not None
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,4})", gathering.text("kernel_series") or "", re.ASCII)
    known = match is not None and (int(match[1]), int(match[2])) >= _KERNEL_KNOWS_AMX
    return known and not around.virtual
