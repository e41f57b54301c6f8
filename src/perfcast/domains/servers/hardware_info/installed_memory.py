"""Parser of the memory modules in the output of `dmidecode -t memory`, without serial numbers and tags.

Source of the fields: DMTF, System Management BIOS Reference Specification (DSP0134), structures of type 16 and 17.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfcast.domains.servers.hardware_info.readings import Host, ReadingCollector
from perfcast.domains.servers.hardware_info.system_facts import Environment
from perfcast.domains.servers.parsing.memory import snap_to_grade
from perfcast.domains.servers.parsing.text_normalization import find_kind, read_rules
from perfcast.microbench.machine import FAILURES, parse_count

_FIELDS = frozenset(
    {
        *("Configured Clock Speed", "Configured Memory Speed", "Data Width", "Error Correction Type", "Form Factor"),
        *("Memory Technology", "Rank", "Size", "Speed", "Total Width", "Type", "Type Detail", "Use"),
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
_TYPES = read_rules("firmware module types")
"""Type letter -> its words; the word boundary excludes 'Unregistered' from 'Registered'."""


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
    letter = find_kind(_TYPES, words)
    if letter == "U":
        return None if check_bits is None else "E" if check_bits else "U"
    return letter


COMMAND = ("dmidecode", "-t", "memory")
_DMIDECODE, _MEMINFO = "dmidecode", "/proc/meminfo"
_DIMM_COLUMNS = ("dimm_count", "dimm_gb", "dimm_groups", "dimm_ranks", "dimm_type", "ecc", "ddr_gen", "mem_rated_mts")
_GIVE = "or give the memory, as '384 GB (12 x 32 GB 2Rx4 PC4-2933Y-R)'"
_MAX_RESERVE = 0.08
"""Share of the installed memory that kernel, firmware and graphics reserve at most."""

_EDAC = "/sys/devices/system/edac/mc"
_EDAC_KINDS = {"Registered": "R", "Load-Reduced": "L"}
_EDAC_TYPE = re.compile(r"(Registered|Load-Reduced|Unbuffered)-DDR([2-9])(?:-RAM)?", re.ASCII)
_EDAC_WIDTH = re.compile(r"x(\d{1,2})", re.ASCII)


def read_memory(collector: ReadingCollector, host: Host, environment: Environment) -> None:
    """Read capacity, modules and rates."""
    try:
        memory, reason = parse_memory(host.run(COMMAND)), ""
    except FAILURES as error:
        memory, reason = None, _explain_dmidecode_error(error)
    if memory is not None:
        _read_modules(collector, memory.modules, memory.ecc)
        if not memory.modules:
            reason = f"dmidecode lists no memory: run with sudo, {_GIVE}"
    if environment.virtual:
        reason = "a virtual machine has no modules: give those of the host if you know them"
    _read_edac(collector, host)
    _read_capacity(collector, host)

    rated = collector.get_number("mem_rated_mts")
    collector.add_missing(
        ["mem_running_mts"],
        "it equals the rated rate: published results have it only when it differs"
        if rated
        else reason or "the firmware does not have it: give the value if it differs from the rated rate",
    )
    if not environment.virtual:
        width = "dmidecode does not have the device width: give x4 or x8 from the label of the module"
        collector.add_missing(["dimm_width"], width)
    collector.add_missing(
        [*_DIMM_COLUMNS, "dimm_width", "hbm_gb"],
        reason or f"the firmware does not have it: read the label of the module, {_GIVE}",
    )


def _read_modules(collector: ReadingCollector, modules: tuple[Module, ...], ecc: bool | None) -> None:
    if not modules:
        return
    total = sum(module.size_gib for module in modules)
    collector.add("mem_total_gb", total, f"{len(modules)} memory devices, {total:g} GiB in all", _DMIDECODE)
    dimms = [module for module in modules if module.ddr_gen and not module.soldered and not module.hbm]
    soldered = [module for module in modules if module.ddr_gen and module.soldered]
    _read_rates(collector, [*dimms, *soldered])
    if not dimms:
        if soldered:
            collector.add_missing(
                [*_DIMM_COLUMNS, "dimm_width"], "the memory is soldered to the board and has no modules"
            )
        return
    hbm = sum(module.size_gib for module in modules if module.hbm)
    collector.add("hbm_gb", hbm, f"{hbm:g} GiB of HBM beside {len(dimms)} DIMMs", _DMIDECODE)
    kinds = Counter(
        Module(module.size_gib, module.ddr_gen, module.rated_mts, None, module.ranks, module.dimm_type)
        for module in dimms
    )
    # on a tie the larger module, so that the order of the slots does not matter
    main, most = max(kinds.items(), key=lambda item: (item[1], item[0].size_gib, _describe_modules(*item)))
    everything = "; ".join(sorted((_describe_modules(kind, number) for kind, number in kinds.items()), reverse=True))
    _add_all(collector, {"dimm_count": len(dimms), "dimm_groups": len(kinds)}, everything, _DMIDECODE)
    of_main = {"dimm_gb": main.size_gib, "dimm_ranks": main.ranks, "dimm_type": main.dimm_type, "ddr_gen": main.ddr_gen}
    _add_all(collector, of_main, _describe_modules(main, most), _DMIDECODE)
    collector.add("ecc", ecc, f"error correction: {'yes' if ecc else 'no'}", _DMIDECODE)


def _read_rates(collector: ReadingCollector, modules: list[Module]) -> None:
    """Read the rates of the slowest module, because all modules run at one rate."""
    rated = min((module.rated_mts for module in modules if module.rated_mts), default=None)
    running = min((module.running_mts for module in modules if module.running_mts), default=None)
    collector.add("mem_rated_mts", rated, f"Speed: {rated} MT/s", _DMIDECODE)
    if running != rated:
        collector.add("mem_running_mts", running, f"Configured Memory Speed: {running} MT/s", _DMIDECODE)


def _describe_modules(module: Module, number: int) -> str:
    parts = (
        f"{number} x {module.size_gib:g} GiB",
        f"DDR{module.ddr_gen}",
        f"{module.rated_mts} MT/s" if module.rated_mts else "",
        f"{module.ranks} rank{'s'[: module.ranks > 1]}" if module.ranks else "",
        module.dimm_type or "",
    )
    return " ".join(filter(None, parts))


def _read_capacity(collector: ReadingCollector, host: Host) -> None:
    """Read the capacity from the memory that the kernel manages if no source lists the modules."""
    if collector.get_number("mem_total_gb") is not None:
        return
    match = re.search(r"^MemTotal:\s{1,40}(\d{1,15}) kB", host.read_text(_MEMINFO), re.ASCII | re.MULTILINE)
    if match is None:
        collector.add_missing(["mem_total_gb"], f"{_MEMINFO} does not have it: give the value")
        return
    managed = int(match[1]) / 1024**2
    installed = estimate_installed_gib(managed)
    if collector.add("mem_total_gb", installed or round(managed, 1), f"MemTotal: {match[1]} kB", _MEMINFO):
        collector.add_note(
            f"memory: the system manages {managed:.4g} GiB, and "
            + (
                f"{installed:g} GiB is the next size that modules add up to: firmware and kernel reserve the difference"
                if installed
                else "firmware and kernel reserve more of the installed memory: give the memory if you know it"
            )
        )


def estimate_installed_gib(managed: float) -> float | None:
    """Return the next capacity of equal modules above the managed memory; None if it is too far above.

    Units: GiB. Equal modules in 1, 2, 4, 8 ... slots times 4, 5, 6 or 7 give 4 sizes per doubling: 64, 80, 96, 112,
    128.
    """
    if managed <= 0:
        return None
    step = 2.0 ** (math.floor(math.log2(managed)) - 2)
    installed = math.ceil(managed / step) * step
    return installed if installed - managed <= _MAX_RESERVE * installed else None


def _explain_dmidecode_error(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"dmidecode is not installed: install it and run with sudo, {_GIVE}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"dmidecode does not end: {_GIVE.removeprefix('or ')}"
    return f"dmidecode needs root: run with sudo, {_GIVE}"


def _read_edac(collector: ReadingCollector, host: Host) -> None:
    """Read number, size, kind, generation and device width of the modules from EDAC, which needs no root."""
    folders = [
        f"{_EDAC}/{controller}/{name}"
        for controller in host.list_names(_EDAC)
        for name in host.list_names(f"{_EDAC}/{controller}")
    ]
    folders = [
        folder for folder in folders if re.fullmatch(r"(?:dimm|rank)\d{1,4}", folder.rpartition("/")[2], re.ASCII)
    ]
    filled = {folder: size for folder in folders if (size := parse_count(host.read_text(f"{folder}/size")))}
    if not filled:
        return
    sizes = Counter(size / 1024 for size in filled.values())
    text = ", ".join(f"{number} x {size:g} GiB" for size, number in sorted(sizes.items()))
    collector.add("mem_total_gb", sum(size * number for size, number in sizes.items()), text, _EDAC)
    # some drivers list ranks, and a module can have several
    if not any("/rank" in folder for folder in filled):
        most = max(sizes, key=lambda size: (sizes[size], size))
        modules = {"dimm_count": sizes.total(), "dimm_gb": most, "dimm_groups": len(sizes)}
        _add_all(collector, modules, text, _EDAC)
    types, widths = (
        {host.read_text(f"{folder}/{name}") for folder in filled} for name in ("dimm_mem_type", "dimm_dev_type")
    )
    if len(types) == 1 and (kind := _EDAC_TYPE.fullmatch(types.pop())):
        letter = _EDAC_KINDS.get(kind[1])
        _add_all(
            collector, {"dimm_type": letter, "ddr_gen": int(kind[2]), "ecc": True if letter else None}, kind[0], _EDAC
        )
    if len(widths) == 1 and (width := _EDAC_WIDTH.fullmatch(widths.pop())):
        collector.add("dimm_width", int(width[1]), width[0], _EDAC)


def _add_all(collector: ReadingCollector, values: Mapping[str, float | str | None], text: str, where: str) -> None:
    for column, value in values.items():
        collector.add(column, value, text, where)
