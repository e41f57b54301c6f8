"""Metrics of a running machine and of groups of processes on it, once a second, from files that Linux has anyway.

A `Sampler` reads a `Snapshot`; `compute_metrics` turns two of them into rates and levels. Nothing here knows campaigns,
so an online command can use it. A metric that the machine lacks, or whose counter went backwards, is absent and never
zero.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from perfcast.domains.interference.measuring import parsers
from perfcast.utils.errors import UserError

Metrics = dict[str, float]
_MAX_PROCESSES = 200
"""Processes of one group that are read; others are left out, so that the cost is bounded."""


@dataclass(frozen=True)
class Group:
    """Processes that are observed together.

    Args:
        folder: Folder of its control group; None where there are no control groups.
        root: Process that is read with its descendants where there is no control group.
        with_processes: Whether processes are read one by one, besides the totals of the group.
    """

    folder: Path | None = None
    root: int | None = None
    with_processes: bool = True


@dataclass
class Snapshot:
    """Totals and levels at one time. Units: `time` in seconds of the sampler's clock."""

    time: float
    system: parsers.Readings
    groups: dict[str, parsers.Readings] = field(default_factory=dict)
    processes: dict[str, dict[int, parsers.Readings]] = field(default_factory=dict)


class Sampler:
    """Reader of all metrics.

    Args:
        root: Root of /proc.
        clock: Clock of the snapshots.
    """

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock = root, clock
        files = [(str(root / path), prefix, parser) for path, (prefix, parser) in parsers.SYSTEM_FILES.items()]
        self._files = [entry for entry in files if _read(entry[0])]

    def read(self, groups: Mapping[str, Group] | None = None) -> Snapshot:
        """Read the machine and groups."""
        snapshot = Snapshot(self._clock(), parsers.Readings())
        for name, group in (groups or {}).items():
            snapshot.groups[name] = self._read_group(group)
            if group.with_processes:
                snapshot.processes[name] = self._read_processes(group)
        for path, prefix, parser in self._files:
            _merge(snapshot.system, parser(_read(path)), f"{prefix}.")
        return snapshot

    @staticmethod
    def _read_group(group: Group) -> parsers.Readings:
        readings = parsers.Readings()
        for name, parser in parsers.GROUP_FILES.items() if group.folder else ():
            _merge(readings, parser(_read(f"{group.folder}/{name}")))
        return readings

    def _read_processes(self, group: Group) -> dict[int, parsers.Readings]:
        listed = {}
        for process in self._list_processes(group)[:_MAX_PROCESSES]:
            folder = f"{self._root}/proc/{process}"
            readings = parsers.Readings()
            for name, parser in parsers.PROCESS_FILES.items():
                _merge(readings, parser(_read(f"{folder}/{name}")))
            if not readings.counters:
                continue  # it ended meanwhile
            threads = [folder]
            if readings.levels.get("threads", 1) > 1:
                with suppress(OSError):
                    threads = [entry.path for entry in os.scandir(f"{folder}/task")]
            for path in threads:
                for name, value in parsers.parse_thread_schedule(_read(f"{path}/schedstat")).counters.items():
                    readings.counters[name] = readings.counters.get(name, 0.0) + value
            listed[process] = readings
        return listed

    def _list_processes(self, group: Group) -> list[int]:
        if group.folder and (numbers := _read(f"{group.folder}/cgroup.procs").split()):
            return [int(number) for number in numbers if number.isdigit()]
        listed: list[int] = []
        waiting = [] if group.root is None else [group.root]
        while waiting and len(listed) < _MAX_PROCESSES:
            process = waiting.pop()
            listed.append(process)
            children = _read(f"{self._root}/proc/{process}/task/{process}/children").split()
            waiting += [int(number) for number in children if number.isdigit()]
        return listed


@dataclass
class SystemMetrics:
    """Metrics of one interval: of the machine, of each processor, and of each group."""

    seconds: float
    machine: Metrics
    processors: dict[int, Metrics]
    groups: dict[str, Metrics]


def compute_metrics(before: Snapshot, after: Snapshot) -> SystemMetrics:
    """Return rates per second of counters, and levels, between two snapshots.

    Levels also have a rate, `<name>.change`. A processor's time in a mode is the share of the interval.
    """
    seconds = after.time - before.time
    rates = _rates(before.system.counters, after.system.counters, seconds)
    processors: dict[int, Metrics] = {}
    machine: Metrics = {}
    for name, value in rates.items():
        if name.startswith("stat.cpu") and (number := name[8 : name.index(".", 8)]).isdigit():
            processors.setdefault(int(number), {})[name.rpartition(".")[2]] = value
        else:
            machine[name] = value
    for name, value in after.system.levels.items():
        machine[name] = value
        if name in before.system.levels and seconds > 0:
            machine[f"{name}.change"] = (value - before.system.levels[name]) / seconds
    for mode in parsers.CPU_MODES:
        shares = [modes[mode] for modes in processors.values() if mode in modes]
        if shares:
            machine[f"stat.highest.{mode}"], machine[f"stat.lowest.{mode}"] = max(shares), min(shares)
    groups = {name: _group_metrics(name, before, after, seconds) for name in after.groups}
    return SystemMetrics(seconds, machine, processors, groups)


def _group_metrics(name: str, before: Snapshot, after: Snapshot, seconds: float) -> Metrics:
    metrics: Metrics = {}
    old = before.groups.get(name)
    if old is not None:
        metrics.update(_rates(old.counters, after.groups[name].counters, seconds))
    metrics.update(after.groups[name].levels)
    if name not in after.processes:
        return metrics
    earlier, later = before.processes.get(name, {}), after.processes.get(name, {})
    totals: dict[str, list[float]] = {}
    for process, readings in later.items():
        # a process that started meanwhile has all its total from this interval, a reused number too
        start = earlier[process].counters if process in earlier else {}
        for key, value in readings.counters.items():
            past = start.get(key, 0.0)
            totals.setdefault(key, []).append(value - past if value >= past else value)
    if seconds > 0 and name in before.processes:
        metrics.update({f"processes.{key}": math.fsum(values) / seconds for key, values in totals.items()})
    for key in ("resident_pages", "threads"):
        metrics[f"processes.{key}"] = math.fsum(readings.levels.get(key, 0.0) for readings in later.values())
    metrics["processes.count"] = float(len(later))
    run, wait = metrics.get("processes.run_seconds"), metrics.get("processes.wait_seconds")
    if run is not None and wait is not None and run + wait > 0:
        metrics["processes.run_share"] = run / (run + wait)
    return metrics


def _rates(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> Metrics:
    if seconds <= 0:
        return {}
    differences = {name: value - before[name] for name, value in after.items() if name in before}
    return {name: difference / seconds for name, difference in differences.items() if difference >= 0}


def row_of_group(
    metrics: SystemMetrics, name: str, others: Iterable[str], cpus: Sequence[int], host: str = ""
) -> Metrics:
    """Return the metrics that describe one group: the machine's, its processors', its own and its neighbors'.

    Args:
        others: Groups whose sum is `others.<metric>`.
        cpus: Processors that the group may use; their mean is `allowed.<mode>`.
        host: Group that contains all groups and carries shared limits.
    """
    row = dict(metrics.machine)
    for mode in parsers.CPU_MODES:
        shares = [metrics.processors[cpu][mode] for cpu in cpus if mode in metrics.processors.get(cpu, {})]
        if shares:
            row[f"allowed.{mode}"] = math.fsum(shares) / len(shares)
    row.update({f"group.{key}": value for key, value in metrics.groups.get(name, {}).items()})
    row.update({f"host.{key}": value for key, value in metrics.groups.get(host, {}).items()})
    # without a neighbor the sum is zero, which is no missing value
    sums: Metrics = {} if (neighbors := list(others)) else dict.fromkeys(metrics.groups.get(name, {}), 0.0)
    for other in neighbors:
        for key, value in metrics.groups.get(other, {}).items():
            sums[key] = sums.get(key, 0.0) + value
    sums.pop("processes.run_share", None)
    row.update({f"others.{key}": value for key, value in sums.items()})
    return row


def _merge(target: parsers.Readings, source: parsers.Readings, prefix: str = "") -> None:
    target.counters.update({f"{prefix}{name}": value for name, value in source.counters.items()})
    target.levels.update({f"{prefix}{name}": value for name, value in source.levels.items()})


def require_linux(root: Path = Path("/")) -> None:
    """Raise UserError where the counters of Linux are absent."""
    if not sys.platform.startswith("linux") or not (root / "proc/stat").is_file():
        raise UserError("there must be the counters in /proc of Linux", "there are none", "use Linux")


def _read(path: str) -> str:
    """Return the text of a file, empty where it is absent or not readable."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes twice the time
            return file.read().decode("ascii", "replace")
    except (OSError, ValueError):
        return ""
