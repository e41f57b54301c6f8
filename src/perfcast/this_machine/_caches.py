"""Caches per core and per chip."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfcast.this_machine import lscpu
from perfcast.this_machine._cores import Cores, cpu_folders
from perfcast.this_machine._host import Surroundings
from perfcast.this_machine._part import known_part
from perfcast.this_machine.commands import Host
from perfcast.this_machine.reading import Gathering

_PER_CORE = {"L1d cache": "l1d_kb", "L1i cache": "l1i_kb", "L2 cache": "l2_kb_per_core"}
_L3 = "L3 cache"
_LEVELS = {"1Data": "L1d cache", "1Instruction": "L1i cache", "2Unified": "L2 cache", "3Unified": "L3 cache"}
_COLUMNS = (*_PER_CORE.values(), "l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice")
_Sizes = Mapping[str, tuple[lscpu.CacheSize, str, str]]


def read_caches(gathering: Gathering, host: Host, fields: lscpu.Fields, around: Surroundings, cores: Cores) -> None:
    """Read cache sizes: first and second level per core, third level per chip and per slice.

    A hypervisor may show any cache it likes, so that in a virtual machine the named part's own caches are better.
    """
    if around.virtual and known_part(gathering):
        gathering.miss(_COLUMNS, "a hypervisor shows what caches it likes: the part's own are known by its name")
        return
    sizes = _of_lscpu(fields) or _of_kernel(host)
    if around.virtual and sizes:
        gathering.note("caches are those that the hypervisor shows, which need not be the processor's")
    if cores.mixed:
        gathering.miss(_PER_CORE.values(), "cores differ, and so do their caches: there is no one size per core")
    else:
        for name, column in _PER_CORE.items():
            if name in sizes:
                size, text, where = sizes[name]
                gathering.put(column, _per_core(size, cores.cores), text, where)
    if _L3 in sizes:
        _read_l3(gathering, *sizes[_L3], cores.cores)
    gathering.miss(_COLUMNS, "neither lscpu nor the kernel says it: give it, or the processor's name, which tells it")


def _per_core(size: lscpu.CacheSize, cores: int | None) -> float | None:
    """Return KiB of one core: a cache that cores share counts in parts."""
    if not size.of_all:
        return size.kib
    parts = max(size.instances or 0, cores or 0)
    return size.kib / parts if parts else None


def _read_l3(gathering: Gathering, size: lscpu.CacheSize, text: str, where: str, cores: int | None) -> None:
    chips = gathering.number("chips")
    slices = size.instances
    if not size.of_all or not chips:
        why = "lscpu is too old to say of how many parts" if not size.of_all else "the number of chips is not known"
        gathering.miss(["l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice"], f"{why}: give the third-level cache")
        return
    gathering.put("l3_mb_per_chip", size.kib / 1024 / chips, text, where)
    if slices and slices % chips == 0:
        gathering.put("l3_slice_mb", size.kib / 1024 / slices, text, where)
        whole = cores is not None and cores % slices == 0
        gathering.put("l3_cores_per_slice", (cores or 0) / slices if whole else None, text, where)


def _of_lscpu(fields: lscpu.Fields) -> _Sizes:
    sizes = {}
    for name in (*_PER_CORE, _L3):
        text = lscpu.first(fields, name)
        size = lscpu.cache_size(text)
        if size is not None and size.kib > 0:
            sizes[name] = (size, text, "lscpu")
    return sizes


def _of_kernel(host: Host) -> _Sizes:
    """Return the sums over the caches that the kernel lists by processor, each counted once."""
    found: dict[str, dict[str, float]] = {}
    for cpu in cpu_folders(host):
        for index in (name for name in host.names(f"{cpu}/cache") if name.startswith("index")):
            folder = f"{cpu}/cache/{index}"
            name = _LEVELS.get(host.text(f"{folder}/level") + host.text(f"{folder}/type"))
            size = re.fullmatch(r"(\d{1,9})K", host.text(f"{folder}/size"), re.ASCII)
            sharing = host.text(f"{folder}/shared_cpu_list")
            if name and size and sharing:
                found.setdefault(name, {})[sharing] = float(size[1])
    where = "/sys/devices/system/cpu"
    return {
        name: (lscpu.CacheSize(total, len(each), of_all=True), f"{len(each)} caches, {total:g} KiB in all", where)
        for name, each in found.items()
        if (total := sum(each.values())) > 0
    }
