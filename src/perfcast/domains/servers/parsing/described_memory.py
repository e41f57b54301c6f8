"""Parser of memory as people, configurators, dmidecode and publishers of results write it, of any DDR generation.

The forms of published results are tried first. Other wordings are rewritten piece by piece: `24x 64GB RDIMM, 5600MT/s,
Dual Rank`, `64 GB DDR5-4800 x 16`, `12 DIMMs of 32 GB`, `Size: 64 GB Type: DDR5 Speed: 4800 MT/s`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from perfcast.domains.servers.parsing.memory import Memory, parse_memory, parse_module, parse_older_memory, to_gib
from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    extract_all,
    is_consumed,
    normalize,
    read_rules,
    rewrite,
)

_REWRITES = read_rules("described memory")
"""Wordings -> those of the patterns below, applied in order."""

_LETTER = compile_pattern(r"\b(PC[45]-\d{2,5}(?:/\d{2,5})?[A-Z]{0,2}-)([HP])(?![a-z])")
_LETTERS = {"H": "M", "P": "R"}
"""Other letters of a type: multiplexed ranks with a height, registered with address parity."""

_SIZE = r"(\d{1,5}(?:\.\d{1,3})?) ?([GMT]B)"
_KIND = r"(?:(?:MR|LR|R|U|SO|FB)?-?DIMMs?|modules?|sticks?|pcs\.?|pieces?)"
_TIMES = compile_pattern(rf"(?<![\w.])(\d{{1,15}}) ?x ?{_SIZE}(?![a-z])")
_OF = compile_pattern(rf"(?<![\w.])(\d{{1,4}}) (?:{_KIND} ?(?:of|with|at|@|,|x)?|of) ?{_SIZE}(?![a-z])")
_BY = compile_pattern(
    rf"(?<![\w.]){_SIZE}(?![a-z])(?:.{{0,80}}?)(?:\bx ?|\bqty\.? ?:? ?|\bquantity ?:? ?|, ?(?=\d{{1,4}} ?{_KIND}))"
    rf"(\d{{1,4}})(?![\w.])(?: ?{_KIND})?"
)
_GENERATION = compile_pattern(r"\bDDR([2-5])(?!\d)")
_JOINT = compile_pattern(r"(?:\bx|\bqty\.?|\bquantity) ?:? ?$")
_OUTER = compile_pattern(r"^ ?(\d{1,4}) ?x ?(?=[a-z(])")
_LISTED = compile_pattern(rf"\bsize ?: ?{_SIZE}\b")
_ALONE = compile_pattern(rf"(?<![\w.]){_SIZE}(?![a-z])")
_RANKED = compile_pattern(r"\b\d{1,2}(?:S\d|D)?Rx\d{1,2}\b|\b\d rank\b")
_PIECES = compile_pattern(
    r"\bPC ?[2-5]?L?V?[ -]{0,3}\d{2,5}(?:/\d{2,5})?[A-Z]{0,3}(?:-[A-Z0-9]{1,4}){0,4}(?![a-z0-9])"
    r"|\bDDR[2-5]?[a-z]?(?:[ -]{0,3}\d{3,5}[A-Z]{0,3})?(?![a-z0-9])|\brunning (?:at|@) ?\d{3,5}|\b\d{3,5} ?(?:MT/s|MHz)"
    rf"|\b\d{{1,2}}(?:S\d|D)?Rx\d{{1,2}}\b|\b\d rank\b|\b{_KIND}(?![a-z])|\bECC\b|\bnon-ECC\b"
    r"|\bCL ?\d{1,2}(?:-\d{1,2}){0,3}\b|\bCAS(?:-\d{1,2}){0,4}\b|\bEC\d\b|\b1\.\d{1,2} ?V\b"
    r"|\b\d{3}-pin\b|\bP\d{5}-\w\d\d\b|\b\d{1,2} ?Gbit?\b"
)
_WORDS = compile_pattern(
    r"\b(?:registered|reg|unbuffered|buffered|load[ -]reduced|multiplexed[ -]rank|SDRAM|DRAM|memory|RAM"
    r"|smart|standard|kits?|total|installed|system|each|of|and|with|at|per|for|speed|type|detail|synchronous"
    r"|form factor|size|manufacturer|server"
    r"|HPE|HP|Dell|Lenovo|ThinkSystem|Samsung|Micron|Hynix|SK|Kingston|Crucial|Cisco|Supermicro|MT/s|MHz|GB|running"
    r"|dual|channels?|populated|advanced|rate|capacity)\b"
)
_LARGEST_MODULE_GB = 512
_SLOWEST_DDR5 = 4800
_OLD_GENERATIONS = (1, 2, 3)
_SHARED = ("dimm_ranks", "dimm_width", "dimm_type", "ecc", "ddr_gen", "mem_rated_mts", "mem_running_mts", "mem_eff_mts")


def parse_described_memory(text: str) -> Memory:
    """Parse memory in any wording; complete where nothing of the text was left over.

    A capacity that differs from the modules is left out. Units: see `Memory`.
    """
    stated = parse_memory(_LETTER.sub(_rename_letter, normalize(text)))
    if not stated.complete:
        older = parse_older_memory(text)
        if older.complete and older.ddr_gen in _OLD_GENERATIONS:
            stated = older
        elif not (stated.groups and stated.mem_rated_mts):
            stated = _parse_words(text)
        else:  # the label of the modules is known, and the text has no capacity or some further words
            others = _parse_words(text)
            stated = replace(stated, mem_total_gb=stated.mem_total_gb or stated.mem_sum_gb, complete=others.complete)
    modules, total = stated.mem_sum_gb, stated.mem_total_gb
    if modules is not None and total is not None and abs(modules - total) > 0.02 * total:
        return replace(stated, mem_total_gb=modules, complete=False)
    return stated


def _rename_letter(match: re.Match[str]) -> str:
    return f"{match[1]}{_LETTERS[match[2].upper()]}"


def _parse_words(text: str) -> Memory:
    value = rewrite(text, _REWRITES)
    module = parse_module(value)
    groups, total, remainder = _find_sizes(value, has_ranks=_RANKED.search(value) is not None)
    main = max(groups, default=None, key=lambda group: group[0] or 0)
    counted = bool(groups) and all(count for count, _ in groups)
    count = sum(count or 0 for count, _ in groups) if counted else None
    modules = sum((count or 0) * size for count, size in groups) if counted else None
    _, remainder = extract_all(_PIECES, remainder)
    _, remainder = extract_all(_WORDS, remainder)
    module_cells = {name: getattr(module, name) for name in _SHARED}
    named = _GENERATION.search(value)
    if named:  # a rate of another generation is no reason to doubt the name
        module_cells["ddr_gen"] = int(named[1])
    elif module.ddr_gen is None and (module.dimm_type == "M" or (module.mem_rated_mts or 0) >= _SLOWEST_DDR5):
        module_cells["ddr_gen"] = 5
    return Memory(
        mem_total_gb=total or modules,
        mem_sum_gb=modules,
        hbm_gb=0.0 if counted else None,
        dimm_count=count,
        dimm_gb=main[1] if main else None,
        dimm_groups=len(groups) if counted else None,
        **(module_cells if _is_module(module) or main or total else {}),
        complete=bool(main or total or module.ddr_gen) and is_consumed(remainder),
    )


def _is_module(module: Memory) -> bool:
    return module.ddr_gen is not None or module.mem_rated_mts is not None or module.dimm_type is not None


_Groups = list[tuple[int | None, float]]


def _find_sizes(value: str, *, has_ranks: bool) -> tuple[_Groups, float | None, str]:
    """Return groups (count, GiB of a module), the capacity in GiB, and the remaining text."""
    outer = _OUTER.match(value)
    times = int(outer[1]) if outer else 1
    groups, remainder = _find_groups(value[outer.end() :] if outer else value, times)
    if any(count == 0 for count, _ in groups):
        return [], None, value
    alone, remainder = extract_all(_ALONE, remainder)
    total = to_gib(alone[0][1], alone[0][2]) if alone else None
    if total is None:
        return groups, None, remainder
    named = (outer or has_ranks) and total <= _LARGEST_MODULE_GB
    # the name of a kit of one module, such as 64GB (1x64GB), does not tell how many kits there are
    if (not groups and named) or groups == [(times, total)]:
        return [(times if outer else None, total)], None, remainder
    return groups, None if outer else total, remainder


def _find_groups(value: str, times: int) -> tuple[_Groups, str]:
    """Return groups (count, GiB of a module) and the remaining text; `times` multiplies the counts."""
    listed, remainder = extract_all(_LISTED, value)
    if listed:
        sizes = [to_gib(match[1], match[2]) for match in listed]
        return [(sizes.count(size) if len(sizes) > 1 else None, size) for size in dict.fromkeys(sizes)], remainder
    for pattern in (_TIMES, _OF):
        matches, remainder = extract_all(pattern, value)
        if matches:
            return [(times * int(match[1]), to_gib(match[2], match[3])) for match in matches], remainder
    match = _BY.search(value)
    if match is None:
        return [], value
    between = _JOINT.sub(" ", value[match.end(2) : match.start(3)])
    others = f"{value[: match.start()]} {between} {value[match.end(3) :]}"
    return [(times * int(match[3]), to_gib(match[1], match[2]))], others
