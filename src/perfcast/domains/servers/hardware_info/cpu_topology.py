"""Sockets, cores, hardware threads and caches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from perfcast.domains.servers.hardware_info.cpu_facts import is_known_cpu_model
from perfcast.domains.servers.hardware_info.system_facts import Environment
from perfcast.microbench import readings
from perfcast.microbench.readings import Host, ReadingCollector

_CPUS = "/sys/devices/system/cpu"
_CPU = re.compile(r"cpu(\d{1,6})", re.ASCII)
_COUNT_COLUMNS = ("chips", "cores_enabled_total", "threads_per_core")

_PER_CORE = {"L1d cache": "l1d_kb", "L1i cache": "l1i_kb", "L2 cache": "l2_kb_per_core"}
_L3 = "L3 cache"
_LEVELS = {"1Data": "L1d cache", "1Instruction": "L1i cache", "2Unified": "L2 cache", "3Unified": "L3 cache"}
_CACHE_COLUMNS = (*_PER_CORE.values(), "l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice")
_Sizes = Mapping[str, tuple[readings.CacheSize, str, str]]


@dataclass(frozen=True)
class Cores:
    """Sockets, cores and the numbers of threads that cores have; None where unknown.

    `mixed` cores differ, as performance and efficiency cores do.
    """

    chips: int | None = None
    cores: int | None = None
    threads: tuple[int, ...] = ()
    text: str = ""
    where: str = ""

    @property
    def mixed(self) -> bool:
        """Return whether some cores have more threads than others."""
        return len(self.threads) > 1


def cpu_folders(host: Host) -> list[str]:
    """Return the folders of the CPUs of the kernel in numerical order."""
    matches = (_CPU.fullmatch(name) for name in host.list_names(_CPUS))
    return [f"{_CPUS}/cpu{number}" for number in sorted(int(match[1]) for match in matches if match)]


def read_cores(collector: ReadingCollector, host: Host, fields: readings.Fields, environment: Environment) -> Cores:
    """Read the numbers of sockets, enabled cores and threads per core."""
    kernel, printed = _read_kernel_topology(host), _parse_lscpu_topology(fields)
    # the kernel's lists are right for mixed or disabled cores; lscpu counts sockets better
    best = kernel if kernel.cores else printed
    chips, source = (printed.chips, printed) if printed.chips else (kernel.chips, kernel)
    if environment.virtual and chips and chips > 1 and best.cores == chips:
        collector.add_missing(
            ["chips"], "the hypervisor shows every CPU as one socket of its own: give the number of chips"
        )
        chips = None
    collector.add("chips", chips, source.text, source.where)
    collector.add("cores_enabled_total", best.cores, best.text, best.where)
    if best.mixed:
        many = " or ".join(map(str, best.threads))
        collector.add_note(f"cores differ, as performance and efficiency cores do: {best.text}")
        collector.add_missing(
            ["threads_per_core"], f"cores have {many} threads: there is no common number of threads per core"
        )
    elif best.threads:
        collector.add("threads_per_core", best.threads[0], best.text, best.where)
    collector.add_missing(_COUNT_COLUMNS, "neither lscpu nor the kernel has it: give the value")
    return best


def _read_kernel_topology(host: Host) -> Cores:
    cores: dict[str, int] = {}
    packages: set[int] = set()
    for folder in cpu_folders(host):
        siblings = host.read_text(f"{folder}/topology/core_cpus_list") or host.read_text(
            f"{folder}/topology/thread_siblings_list"
        )
        package = readings.parse_count(host.read_text(f"{folder}/topology/physical_package_id"))
        if readings.count_cpus(siblings):
            cores[siblings] = readings.count_cpus(siblings)
        # -1 stands for unknown.
        packages |= set() if package is None else {package}
    if not cores:
        return Cores(chips=len(packages) or None, where=_CPUS, text=f"{len(packages)} packages")
    threads = tuple(sorted(set(cores.values())))
    text = ", ".join(
        f"{sum(1 for value in cores.values() if value == number)} cores of {number} thread{'s'[: number > 1]}"
        for number in threads
    )
    return Cores(len(packages) or None, len(cores), threads, text, _CPUS)


def _parse_lscpu_topology(fields: readings.Fields) -> Cores:
    counts = {
        name: readings.parse_count(readings.first_value(fields, name))
        for name in ("Socket(s)", "Core(s) per socket", "Thread(s) per core", "Cluster(s)", "Core(s) per cluster")
    }
    sockets, threads = counts["Socket(s)"], counts["Thread(s) per core"]
    text = ", ".join(f"{name}: {value}" for name, value in counts.items() if value is not None)
    if sockets and counts["Core(s) per socket"]:
        cores: int | None = sockets * (counts["Core(s) per socket"] or 0)
    else:
        # Arm firmware without sockets counts cores by cluster
        cores = (counts["Cluster(s)"] or 0) * (counts["Core(s) per cluster"] or 0) or None
    models = [value for name, value in fields if name == "Model name" and value]
    if len(models) > 1:
        # every kind of core has its own fields; the sockets are common
        return Cores(chips=sockets, text=text, where="lscpu")
    online = readings.count_cpus(readings.first_value(fields, "On-line CPU(s) list"))
    if cores and threads and online and cores * threads != online:
        kinds = (1, threads) if threads > 1 and cores < online < cores * threads else ()
        return Cores(sockets, cores, kinds, text, "lscpu")
    return Cores(sockets, cores, (threads,) if threads else (), text, "lscpu")


def read_caches(
    collector: ReadingCollector, host: Host, fields: readings.Fields, environment: Environment, cores: Cores
) -> None:
    """Read cache sizes: first and second level per core, third level per chip and per slice.

    A hypervisor can show any cache sizes; for a known CPU model, the catalog is better.
    """
    if environment.virtual and is_known_cpu_model(collector):
        collector.add_missing(_CACHE_COLUMNS, "a hypervisor can show any cache sizes: those of the CPU model are used")
        return
    sizes = _parse_lscpu_caches(fields) or _read_kernel_caches(host)
    if environment.virtual and sizes:
        collector.add_note("caches are those that the hypervisor shows; those of the processor can differ")
    if cores.mixed:
        collector.add_missing(
            _PER_CORE.values(), "cores differ, and so do their caches: there is no common size per core"
        )
    else:
        for name, column in _PER_CORE.items():
            if name in sizes:
                size, text, where = sizes[name]
                collector.add(column, _per_core_kib(size, cores.cores), text, where)
    if _L3 in sizes:
        _read_l3(collector, *sizes[_L3], cores.cores)
    collector.add_missing(
        _CACHE_COLUMNS, "neither lscpu nor the kernel has it: give the value or the name of the processor"
    )


def _per_core_kib(size: readings.CacheSize, cores: int | None) -> float | None:
    """Return the KiB per core; a shared cache is divided by its cores."""
    if not size.of_all:
        return size.kib
    parts = max(size.instances or 0, cores or 0)
    return size.kib / parts if parts else None


def _read_l3(collector: ReadingCollector, size: readings.CacheSize, text: str, where: str, cores: int | None) -> None:
    chips = collector.get_number("chips")
    slices = size.instances
    if not size.of_all or not chips:
        reason = (
            "lscpu is too old to print the number of caches" if not size.of_all else "the number of chips is not known"
        )
        collector.add_missing(["l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice"], f"{reason}: give the L3 cache")
        return
    collector.add("l3_mb_per_chip", size.kib / 1024 / chips, text, where)
    if slices and slices % chips == 0:
        collector.add("l3_slice_mb", size.kib / 1024 / slices, text, where)
        whole = cores is not None and cores % slices == 0
        collector.add("l3_cores_per_slice", (cores or 0) / slices if whole else None, text, where)


def _parse_lscpu_caches(fields: readings.Fields) -> _Sizes:
    sizes = {}
    for name in (*_PER_CORE, _L3):
        text = readings.first_value(fields, name)
        size = readings.parse_cache_size(text)
        if size is not None and size.kib > 0:
            sizes[name] = (size, text, "lscpu")
    return sizes


def _read_kernel_caches(host: Host) -> _Sizes:
    """Return the sums over the caches in the kernel's list of CPUs; a shared cache counts once."""
    sizes: dict[str, dict[str, float]] = {}
    for cpu in cpu_folders(host):
        for index in (name for name in host.list_names(f"{cpu}/cache") if name.startswith("index")):
            folder = f"{cpu}/cache/{index}"
            name = _LEVELS.get(host.read_text(f"{folder}/level") + host.read_text(f"{folder}/type"))
            size = re.fullmatch(r"(\d{1,9})K", host.read_text(f"{folder}/size"), re.ASCII)
            sharing = host.read_text(f"{folder}/shared_cpu_list")
            if name and size and sharing:
                sizes.setdefault(name, {})[sharing] = float(size[1])
    where = "/sys/devices/system/cpu"
    return {
        name: (readings.CacheSize(total, len(each), of_all=True), f"{len(each)} caches, {total:g} KiB in all", where)
        for name, each in sizes.items()
        if (total := sum(each.values())) > 0
    }
