"""Memory: capacity and modules, of the firmware's tables, the kernel's error counters, or what the kernel manages."""

from __future__ import annotations

import math
import re
import subprocess
from collections import Counter

from perfcast.this_machine._edac import read_edac
from perfcast.this_machine._host import Surroundings
from perfcast.this_machine.commands import FAILURES, Host
from perfcast.this_machine.dmidecode import Module, parse_memory
from perfcast.this_machine.reading import Gathering

COMMAND = ("dmidecode", "-t", "memory")
_WHERE, _MEMINFO = "dmidecode", "/proc/meminfo"
_DIMM_COLUMNS = ("dimm_count", "dimm_gb", "dimm_groups", "dimm_ranks", "dimm_type", "ecc", "ddr_gen", "mem_rated_mts")
_GIVE = "or give the memory, as '384 GB (12 x 32 GB 2Rx4 PC4-2933Y-R)'"
_LARGEST_RESERVE = 0.08
"""Kernel, firmware and graphics keep a few per cent of what is installed."""


def read_memory(gathering: Gathering, host: Host, around: Surroundings) -> None:
    """Read capacity, modules and rates."""
    try:
        memory, why = parse_memory(host.run(COMMAND)), ""
    except FAILURES as error:
        memory, why = None, _why_not(error)
    if memory is not None:
        _read_modules(gathering, memory.modules, memory.ecc)
        if not memory.modules:
            why = f"dmidecode lists no memory: run with sudo, {_GIVE}"
    if around.virtual:
        why = "a virtual machine has no modules of its own: give those of the host, if known"
    read_edac(gathering, host)
    _read_capacity(gathering, host)

    rated = gathering.number("mem_rated_mts")
    gathering.miss(
        ["mem_running_mts"],
        "it is the rated one: published results state it only where it differs"
        if rated
        else why or "the firmware does not say it: give it if it differs from the rated one",
    )
    if not around.virtual:
        width = "dmidecode does not say of what devices a module is made: give x4 or x8 as on the module's label"
        gathering.miss(["dimm_width"], width)
    gathering.miss(
        [*_DIMM_COLUMNS, "dimm_width", "hbm_gb"],
        why or f"the firmware does not say it: read the module's label, {_GIVE}",
    )


def _read_modules(gathering: Gathering, modules: tuple[Module, ...], ecc: bool | None) -> None:
    if not modules:
        return
    total = sum(module.size_gib for module in modules)
    gathering.put("mem_total_gb", total, f"{len(modules)} memory devices, {total:g} GiB in all", _WHERE)
    dimms = [module for module in modules if module.ddr_gen and not module.soldered and not module.hbm]
    soldered = [module for module in modules if module.ddr_gen and module.soldered]
    _read_rates(gathering, [*dimms, *soldered])
    if not dimms:
        if soldered:
            gathering.miss(
                [*_DIMM_COLUMNS, "dimm_width"], "the memory is soldered to the board: it has no modules to tell of"
            )
        return
    hbm = sum(module.size_gib for module in modules if module.hbm)
    gathering.put("hbm_gb", hbm, f"{hbm:g} GiB of HBM beside {len(dimms)} DIMMs", _WHERE)
    kinds = Counter(
        Module(module.size_gib, module.ddr_gen, module.rated_mts, None, module.ranks, module.dimm_type)
        for module in dimms
    )
    # Equally many: the larger, so that the order of the slots does not matter.
    main, most = max(kinds.items(), key=lambda item: (item[1], item[0].size_gib, _text(*item)))
    everything = "; ".join(sorted((_text(kind, number) for kind, number in kinds.items()), reverse=True))
    gathering.put("dimm_count", len(dimms), everything, _WHERE)
    gathering.put("dimm_groups", len(kinds), everything, _WHERE)
    text = _text(main, most)
    gathering.put("dimm_gb", main.size_gib, text, _WHERE)
    gathering.put("dimm_ranks", main.ranks, text, _WHERE)
    gathering.put("dimm_type", main.dimm_type, text, _WHERE)
    gathering.put("ddr_gen", main.ddr_gen, text, _WHERE)
    gathering.put("ecc", ecc, f"error correction: {'yes' if ecc else 'no'}", _WHERE)


def _read_rates(gathering: Gathering, modules: list[Module]) -> None:
    """Read the slowest module's rates, as the memory runs at one rate."""
    rated = min((module.rated_mts for module in modules if module.rated_mts), default=None)
    running = min((module.running_mts for module in modules if module.running_mts), default=None)
    gathering.put("mem_rated_mts", rated, f"Speed: {rated} MT/s", _WHERE)
    if running != rated:
        gathering.put("mem_running_mts", running, f"Configured Memory Speed: {running} MT/s", _WHERE)


def _text(module: Module, number: int) -> str:
    parts = (
        f"{number} x {module.size_gib:g} GiB",
        f"DDR{module.ddr_gen}",
        f"{module.rated_mts} MT/s" if module.rated_mts else "",
        f"{module.ranks} rank{'s'[: module.ranks > 1]}" if module.ranks else "",
        module.dimm_type or "",
    )
    return " ".join(filter(None, parts))


def _read_capacity(gathering: Gathering, host: Host) -> None:
    """Read the capacity of what the kernel manages, where nothing lists the modules."""
    if gathering.number("mem_total_gb") is not None:
        return
    match = re.search(r"^MemTotal:\s{1,40}(\d{1,15}) kB", host.text(_MEMINFO), re.ASCII | re.MULTILINE)
    if match is None:
        gathering.miss(["mem_total_gb"], f"{_MEMINFO} does not say it: give it")
        return
    managed = int(match[1]) / 1024**2
    installed = installed_gib(managed)
    if gathering.put("mem_total_gb", installed or round(managed, 1), f"MemTotal: {match[1]} kB", _MEMINFO):
        gathering.note(
            f"memory: the system manages {managed:.4g} GiB, and "
            + (
                f"{installed:g} GiB is the next size that modules add up to: firmware and kernel keep the difference"
                if installed
                else "firmware and kernel keep more of what is installed: give the memory if you know it"
            )
        )


def installed_gib(managed: float) -> float | None:
    """Return the capacity that modules add up to, little above what the kernel manages; None where there is none.

    Units: GiB. Equal modules in 1, 2, 4, 8 ... slots times 4, 5, 6 or 7 give 4 sizes per doubling: 64, 80, 96, 112,
    128.
    """
    if managed <= 0:
        return None
    step = 2.0 ** (math.floor(math.log2(managed)) - 2)
    installed = math.ceil(managed / step) * step
    return installed if installed - managed <= _LARGEST_RESERVE * installed else None


def _why_not(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"dmidecode is not installed: install it and run with sudo, {_GIVE}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"dmidecode does not answer: {_GIVE.removeprefix('or ')}"
    return f"dmidecode needs root: run with sudo, {_GIVE}"
