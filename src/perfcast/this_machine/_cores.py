"""Sockets, cores and hardware threads."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.this_machine import lscpu
from perfcast.this_machine._host import Surroundings
from perfcast.this_machine.commands import Host
from perfcast.this_machine.reading import Gathering

_CPUS = "/sys/devices/system/cpu"
_CPU = re.compile(r"cpu(\d{1,6})", re.ASCII)
_COUNTS = ("chips", "cores_enabled_total", "threads_per_core")


@dataclass(frozen=True)
class Cores:
    """Sockets, cores and the numbers of threads that cores have; None where unknown.

    `mixed` tells of cores that differ (performance and efficiency cores).
    """

    chips: int | None = None
    cores: int | None = None
    threads: tuple[int, ...] = ()
    text: str = ""
    where: str = ""

    @property
    def mixed(self) -> bool:
        """Whether some cores have more threads than others."""
        return len(self.threads) > 1


def cpu_folders(host: Host) -> list[str]:
    """Return the folders of the processors that the kernel knows, in order of their numbers."""
    matches = (_CPU.fullmatch(name) for name in host.names(_CPUS))
    return [f"{_CPUS}/cpu{number}" for number in sorted(int(match[1]) for match in matches if match)]


def read_cores(gathering: Gathering, host: Host, fields: lscpu.Fields, around: Surroundings) -> Cores:
    """Read how many sockets, enabled cores and threads per core there are."""
    kernel, printed = _of_kernel(host), _of_lscpu(fields)
    # The kernel's lists stay right where cores differ or some are switched off; sockets are lscpu's own count.
    best = kernel if kernel.cores else printed
    chips, source = (printed.chips, printed) if printed.chips else (kernel.chips, kernel)
    if around.virtual and chips and chips > 1 and best.cores == chips:
        gathering.miss(
            ["chips"], "the hypervisor shows every processor as a socket of its own: give the number of processors"
        )
        chips = None
    gathering.put("chips", chips, source.text, source.where)
    gathering.put("cores_enabled_total", best.cores, best.text, best.where)
    if best.mixed:
        many = " or ".join(map(str, best.threads))
        gathering.note(f"cores differ, as performance and efficiency cores do: {best.text}")
        gathering.miss(["threads_per_core"], f"cores have {many} threads: there is no one number of threads per core")
    elif best.threads:
        gathering.put("threads_per_core", best.threads[0], best.text, best.where)
    gathering.miss(_COUNTS, "neither lscpu nor the kernel says it: give it")
    return best


def _of_kernel(host: Host) -> Cores:
    cores: dict[str, int] = {}
    packages: set[int] = set()
    for folder in cpu_folders(host):
        siblings = host.text(f"{folder}/topology/core_cpus_list") or host.text(
            f"{folder}/topology/thread_siblings_list"
        )
        package = lscpu.count(host.text(f"{folder}/topology/physical_package_id"))
        if lscpu.processors_in(siblings):
            cores[siblings] = lscpu.processors_in(siblings)
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


def _of_lscpu(fields: lscpu.Fields) -> Cores:
    said = {
        name: lscpu.count(lscpu.first(fields, name))
        for name in ("Socket(s)", "Core(s) per socket", "Thread(s) per core", "Cluster(s)", "Core(s) per cluster")
    }
    sockets, threads = said["Socket(s)"], said["Thread(s) per core"]
    text = ", ".join(f"{name}: {value}" for name, value in said.items() if value is not None)
    if sockets and said["Core(s) per socket"]:
        cores: int | None = sockets * (said["Core(s) per socket"] or 0)
    else:
        # An Arm server whose firmware tells of no sockets: cores are counted by cluster.
        cores = (said["Cluster(s)"] or 0) * (said["Core(s) per cluster"] or 0) or None
    models = [value for name, value in fields if name == "Model name" and value]
    if len(models) > 1:
        # Every kind of core has fields of its own, and its sockets are those of all.
        return Cores(chips=sockets, text=text, where="lscpu")
    online = lscpu.processors_in(lscpu.first(fields, "On-line CPU(s) list"))
    if cores and threads and online and cores * threads != online:
        kinds = (1, threads) if threads > 1 and cores < online < cores * threads else ()
        return Cores(sockets, cores, kinds, text, "lscpu")
    return Cores(sockets, cores, (threads,) if threads else (), text, "lscpu")
