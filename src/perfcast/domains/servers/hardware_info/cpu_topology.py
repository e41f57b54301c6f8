"""Sockets, cores, hardware threads and caches, as lscpu counts them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.domains.servers.hardware_info.cpu_facts import is_known_cpu_model
from perfcast.domains.servers.hardware_info.readings import Host, ReadingCollector
from perfcast.domains.servers.hardware_info.system_facts import Environment
from perfcast.microbench import machine as lscpu

_CPUS = "/sys/devices/system/cpu"
_COUNT_COLUMNS = ("chips", "cores_enabled_total", "threads_per_core")
_PER_CORE = {"L1d cache": "l1d_kb", "L1i cache": "l1i_kb", "L2 cache": "l2_kb_per_core"}
_L3_COLUMNS = ("l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice")
_CACHE_COLUMNS = (*_PER_CORE.values(), *_L3_COLUMNS)


@dataclass(frozen=True)
class Cores:
    """Sockets, cores and the numbers of threads that cores have; None where unknown. Several numbers: cores differ."""

    chips: int | None
    cores: int | None
    threads: tuple[int, ...]
    text: str


def read_cores(collector: ReadingCollector, host: Host, fields: lscpu.Fields, environment: Environment) -> Cores:
    """Read the numbers of sockets, enabled cores and threads per core."""
    cores = _parse_topology(fields)
    chips, text, where = cores.chips, cores.text, "lscpu"
    if not chips:  # the firmware of some Arm machines has no sockets
        chips = _count_packages(host)
        text, where = f"{chips} packages", _CPUS
    if environment.virtual and chips and chips > 1 and cores.cores == chips:
        chips, reason = None, "the hypervisor shows every CPU as one socket of its own: give the number of chips"
        collector.add_missing(["chips"], reason)
    collector.add("chips", chips, text, where)
    collector.add("cores_enabled_total", cores.cores, cores.text, "lscpu")
    if len(cores.threads) > 1:
        many = " or ".join(map(str, cores.threads))
        collector.add_note(f"cores differ, as performance and efficiency cores do: {cores.text}")
        collector.add_missing(
            ["threads_per_core"], f"cores have {many} threads: there is no common number of threads per core"
        )
    elif cores.threads:
        collector.add("threads_per_core", cores.threads[0], cores.text, "lscpu")
    collector.add_missing(_COUNT_COLUMNS, "lscpu does not have it: give the value")
    return cores


def _count_packages(host: Host) -> int | None:
    names = [name for name in host.list_names(_CPUS) if re.fullmatch(r"cpu\d{1,6}", name, re.ASCII)]
    packages = {lscpu.parse_count(host.read_text(f"{_CPUS}/{name}/topology/physical_package_id")) for name in names}
    # -1, which is no count, stands for unknown
    return len(packages - {None}) or None


def _parse_topology(fields: lscpu.Fields) -> Cores:
    names = ("Socket(s)", "Core(s) per socket", "Thread(s) per core", "Cluster(s)", "Core(s) per cluster")
    counts = {name: lscpu.parse_count(lscpu.first_value(fields, name)) for name in names}
    text = ", ".join(f"{name}: {value}" for name, value in counts.items() if value is not None)
    sockets, per_socket, threads, clusters, per_cluster = counts.values()
    if len([value for name, value in fields if name == "Model name" and value]) > 1:
        # every kind of core has its own fields; the sockets are common
        return Cores(sockets, None, (), text)
    # Arm firmware without sockets counts cores by cluster
    cores = (sockets or 0) * (per_socket or 0) or (clusters or 0) * (per_cluster or 0) or None
    online = lscpu.count_cpus(lscpu.first_value(fields, "On-line CPU(s) list"))
    if cores and threads and online and cores * threads != online:
        kinds = (1, threads) if threads > 1 and cores < online < cores * threads else ()
        return Cores(sockets, cores, kinds, text)
    return Cores(sockets, cores, (threads,) if threads else (), text)


def read_caches(collector: ReadingCollector, fields: lscpu.Fields, environment: Environment, cores: Cores) -> None:
    """Read cache sizes: first and second level per core, third level per chip and per slice.

    A hypervisor can show any cache sizes; for a known CPU model, the catalog is better.
    """
    if environment.virtual and is_known_cpu_model(collector):
        collector.add_missing(_CACHE_COLUMNS, "a hypervisor can show any cache sizes: those of the CPU model are used")
        return
    texts = {name: lscpu.first_value(fields, name) for name in (*_PER_CORE, "L3 cache")}
    sizes = {name: size for name, text in texts.items() if (size := lscpu.parse_cache_size(text)) and size.kib > 0}
    if environment.virtual and sizes:
        collector.add_note("caches are those that the hypervisor shows; those of the processor can differ")
    if len(cores.threads) > 1:
        reason = "cores differ, and so do their caches: there is no common size per core"
        collector.add_missing(_PER_CORE.values(), reason)
    for name, size in sizes.items():
        if name == "L3 cache":
            _read_l3(collector, size, texts[name], cores.cores)
        elif len(cores.threads) < 2:
            parts = max(size.instances or 0, cores.cores or 0) if size.of_all else 1
            collector.add(_PER_CORE[name], size.kib / parts if parts else None, texts[name], "lscpu")
    collector.add_missing(_CACHE_COLUMNS, "lscpu does not have it: give the value or the name of the processor")


def _read_l3(collector: ReadingCollector, size: lscpu.CacheSize, text: str, cores: int | None) -> None:
    chips, slices = collector.get_number("chips"), size.instances
    if not size.of_all or not chips:
        old = "lscpu is too old to print the number of caches"
        reason = "the number of chips is not known" if size.of_all else old
        collector.add_missing(_L3_COLUMNS, f"{reason}: give the L3 cache")
        return
    collector.add("l3_mb_per_chip", size.kib / 1024 / chips, text, "lscpu")
    if slices and slices % chips == 0:
        collector.add("l3_slice_mb", size.kib / 1024 / slices, text, "lscpu")
        whole = cores is not None and cores % slices == 0
        collector.add("l3_cores_per_slice", (cores or 0) / slices if whole else None, text, "lscpu")
