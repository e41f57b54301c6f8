"""Parsers of the four cache columns: sizes per core or per chip, and the slices of the last level."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    extract_all,
    extract_first,
    normalize,
    read_rules,
    rewrite,
)

_MB_PER = {"KB": 1 / 1024, "MB": 1.0, "GB": 1024.0}
_SIZE = r"(\d{1,6}(?:\.\d{1,4})?) ?([KMG]B)"
_L1 = compile_pattern(rf"^{_SIZE} I ?\+ ?{_SIZE} D on chip per (?:core|chip)$")
_UNIFIED = compile_pattern(
    rf"^{_SIZE} I ?\+ ?D (on|off) chip per (?:([1-9]\d{{0,2}}) )?(core|chip|die|system board|dimm)s?\b"
)
_SLICE = compile_pattern(rf"\b{_SIZE} (?:shared ?)?/ ?([1-9]\d{{0,2}}) cores?\b")
_SLICE_PER_CORE = compile_pattern(rf", ?{_SIZE} per core\b")
_NUCA = compile_pattern(r"\bshared NUCA\b(?: ?/ ?([1-9]\d{0,2}) cores?\b)?")
_NONE = "none"
_REWRITES = read_rules("cache")
"""Other spellings -> the grammar of the parsers, applied in order."""


@dataclass(frozen=True)
class L1Cache:
    """First level. Units: KiB as stated, of a core."""

    l1i_kb: float | None = None
    l1d_kb: float | None = None


@dataclass(frozen=True)
class L2Cache:
    """Second level.

    Units: KiB. `l2_kb` is the stated size per `l2_scope` (core, chip or die); `l2_kb_per_core` is None where a core's
    share needs the number of cores. Values are as stated: CPU models with modules of cores may state the module's size.
    """

    l2_kb: float | None = None
    l2_scope: str | None = None
    l2_kb_per_core: float | None = None


@dataclass(frozen=True)
class L3Cache:
    """Third level.

    Units: MiB. `l3_mb_per_chip` is the whole chip's; `l3_slice_mb` is shared by `l3_cores_per_slice` cores. In an
    asymmetric cache both are means over the kinds of slice. A size per core or group of cores leaves the total None.
    """

    l3_mb_per_chip: float | None = None
    l3_slice_mb: float | None = None
    l3_cores_per_slice: float | None = None
    l3_asymmetric: bool | None = None


def parse_l1(text: str) -> L1Cache:
    """Parse values such as `48 KB I + 24 KB D on chip per core`."""
    match = _L1.match(normalize(text))
    return L1Cache(_to_kib(match[1], match[2]), _to_kib(match[3], match[4])) if match else L1Cache()


def parse_l2(text: str) -> L2Cache:
    """Parse values such as `3 MB I+D on chip per core`."""
    unified, remainder = extract_first(_UNIFIED, normalize(text))
    if unified is None:
        return L2Cache()
    size = _to_kib(unified[1], unified[2])
    number = unified[4]
    scope = unified[5].lower()
    if scope == "core":
        return L2Cache(size, scope, size / int(number or 1))
    shares = [mb * 1024 / cores for mb, cores in _list_slices(remainder, 0.0)]
    return L2Cache(size, scope, sum(shares) / len(shares) if shares else None)


def parse_l3(text: str) -> L3Cache:
    """Parse values such as `72 MB I+D on chip per chip, 24 MB shared / 3 cores`."""
    value = normalize(text)
    if value.casefold() == _NONE:
        return L3Cache(l3_mb_per_chip=0.0, l3_asymmetric=False)
    unified, remainder = extract_first(_UNIFIED, value)
    if unified is None:
        return L3Cache()
    size = _to_mib(unified[1], unified[2])
    number = unified[4]
    scope = unified[5].lower()
    slices = _list_slices(remainder, size)
    if scope == "core":
        slices.append((size, int(number or 1)))
    cores = [count for _, count in slices]
    return L3Cache(
        l3_mb_per_chip=size if scope == "chip" and number is None else None,
        l3_slice_mb=sum(mb for mb, _ in slices) / len(slices) if slices else None,
        l3_cores_per_slice=sum(cores) / len(cores) if cores else None,
        l3_asymmetric=len(set(slices)) > 1,
    )


def parse_other_cache(text: str) -> float | None:
    """Parse values such as `None` or `24 MB I+D off chip per 4 DIMMs`. Units: MiB; 0 where there is none."""
    value = normalize(text)
    unified = _UNIFIED.match(value)
    return 0.0 if value.casefold() == _NONE else _to_mib(unified[1], unified[2]) if unified else None


def rewrite_cache_text(text: str) -> str:
    """Return a cache value such as `32KB(I)+48KB(D)on chip per core` as `32 KB I + 48 KB D on chip per core`."""
    return rewrite(text, _REWRITES)


def _list_slices(text: str, size: float) -> list[tuple[float, int]]:
    """Return (MiB, cores that share them) for each kind of slice; `size` is the whole cache."""
    shared, remainder = extract_all(_SLICE, text)
    per_core, remainder = extract_first(_SLICE_PER_CORE, remainder)
    nuca = _NUCA.search(remainder)
    slices = [(_to_mib(part[1], part[2]), int(part[3])) for part in shared]
    if per_core:
        slices.append((_to_mib(per_core[1], per_core[2]), 1))
    if nuca and nuca[1]:
        slices.append((size, int(nuca[1])))
    return slices


def _to_mib(number: str, unit: str) -> float:
    return float(number) * _MB_PER[unit.upper()]


def _to_kib(number: str, unit: str) -> float:
    return _to_mib(number, unit) * 1024
