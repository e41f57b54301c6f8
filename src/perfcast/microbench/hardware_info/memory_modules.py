"""Memory capacity and modules, from the firmware tables, the error counters of the kernel, or /proc/meminfo.

Source of the EDAC names: the Linux kernel, `drivers/edac/edac_mc.c` (edac_mem_types) and `edac_mc_sysfs.c` (dev_types).
"""

from __future__ import annotations

import math
import re
import subprocess
from collections import Counter

from perfcast.microbench.hardware_info.dmidecode import Module, parse_memory
from perfcast.microbench.hardware_info.readings import ReadingCollector
from perfcast.microbench.hardware_info.system_access import FAILURES, Host
from perfcast.microbench.hardware_info.system_facts import Environment

COMMAND = ("dmidecode", "-t", "memory")
_DMIDECODE, _MEMINFO = "dmidecode", "/proc/meminfo"
_DIMM_COLUMNS = ("dimm_count", "dimm_gb", "dimm_groups", "dimm_ranks", "dimm_type", "ecc", "ddr_gen", "mem_rated_mts")
_GIVE = "or give the memory, as '384 GB (12 x 32 GB 2Rx4 PC4-2933Y-R)'"
_MAX_RESERVE = 0.08
"""Share of the installed memory that kernel, firmware and graphics reserve at most."""

_EDAC = "/sys/devices/system/edac/mc"
_ENTRY = re.compile(r"(dimm|rank)\d{1,4}", re.ASCII)
_KINDS = {"Registered": "R", "Load-Reduced": "L"}
_TYPE = re.compile(r"(Registered|Load-Reduced|Unbuffered)-DDR([2-9])(?:-RAM)?", re.ASCII)
_WIDTH = re.compile(r"x(\d{1,2})", re.ASCII)
_SIZE = re.compile(r"\d{1,9}", re.ASCII)


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
    collector.add("dimm_count", len(dimms), everything, _DMIDECODE)
    collector.add("dimm_groups", len(kinds), everything, _DMIDECODE)
    text = _describe_modules(main, most)
    collector.add("dimm_gb", main.size_gib, text, _DMIDECODE)
    collector.add("dimm_ranks", main.ranks, text, _DMIDECODE)
    collector.add("dimm_type", main.dimm_type, text, _DMIDECODE)
    collector.add("ddr_gen", main.ddr_gen, text, _DMIDECODE)
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
    """Read number, size, kind, generation and device width of the modules from EDAC."""
    sizes: Counter[float] = Counter()
    ranks, types, widths = False, set[str](), set[str]()
    for controller in host.list_names(_EDAC):
        for name in host.list_names(f"{_EDAC}/{controller}"):
            entry, folder = _ENTRY.fullmatch(name), f"{_EDAC}/{controller}/{name}"
            size = host.read_text(f"{folder}/size") if entry else ""
            if entry and _SIZE.fullmatch(size) and int(size):
                sizes[int(size) / 1024] += 1
                ranks |= entry[1] == "rank"
                types.add(host.read_text(f"{folder}/dimm_mem_type"))
                widths.add(host.read_text(f"{folder}/dimm_dev_type"))
    if not sizes:
        return
    kind = _TYPE.fullmatch(types.pop()) if len(types) == 1 else None
    width = _WIDTH.fullmatch(widths.pop()) if len(widths) == 1 else None
    total = sum(size * number for size, number in sizes.items())
    text = ", ".join(f"{number} x {size:g} GiB" for size, number in sorted(sizes.items()))
    collector.add("mem_total_gb", total, text, _EDAC)
    if not ranks:
        # some drivers list ranks, and a module can have several
        collector.add("dimm_count", sizes.total(), text, _EDAC)
        collector.add("dimm_gb", max(sizes, key=lambda size: (sizes[size], size)), text, _EDAC)
        collector.add("dimm_groups", len(sizes), text, _EDAC)
    if kind:
        collector.add("dimm_type", _KINDS.get(kind[1]), kind[0], _EDAC)
        collector.add("ddr_gen", int(kind[2]), kind[0], _EDAC)
        collector.add("ecc", True if kind[1] in _KINDS else None, kind[0], _EDAC)
    collector.add("dimm_width", int(width[1]) if width else None, width[0] if width else "", _EDAC)
