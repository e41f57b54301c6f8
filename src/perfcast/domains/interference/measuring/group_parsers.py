"""Readers of the files of control groups and processes: pure functions of the text of one file.

Names are the same for both versions of control groups where the meaning is. Source: Linux,
Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/*.rst and filesystems/proc.rst.
"""

from __future__ import annotations

import re

from perfcast.domains.interference.measuring.parsers import (
    TICKS_PER_SECOND,
    Parser,
    Readings,
    pairs,
    parse_pressure,
    parse_whole,
)

_CPU_NAMES = {
    "usage_usec": ("usage_seconds", 1e-6),
    "user_usec": ("user_seconds", 1e-6),
    "system_usec": ("system_seconds", 1e-6),
    "throttled_usec": ("throttled_seconds", 1e-6),
    "throttled_time": ("throttled_seconds", 1e-9),
    "burst_usec": ("burst_seconds", 1e-6),
    "burst_time": ("burst_seconds", 1e-9),
    "nr_periods": ("periods", 1.0),
    "nr_throttled": ("throttled_periods", 1.0),
}
_MEMORY_EVENTS = re.compile(
    r"pg[a-z_]+|workingset_(refault|activate|restore)\w*|workingset_nodereclaim|thp_\w+|.*fault\w*"
)


def parse_cpu_stat(text: str) -> Readings:
    """Read cpu.stat of either version."""
    readings = Readings()
    for name, value in pairs(text):
        if name in _CPU_NAMES:
            known, unit = _CPU_NAMES[name]
            readings.counters[f"cpu.{known}"] = value * unit
    return readings


def parse_cpuacct_stat(text: str) -> Readings:
    """Read cpuacct.stat of version 1."""
    values = {name: value / TICKS_PER_SECOND for name, value in pairs(text) if name in ("user", "system")}
    return Readings(counters={f"cpu.{name}_seconds": value for name, value in values.items()})


def parse_cpuacct_usage(text: str) -> Readings:
    """Read cpuacct.usage of version 1."""
    value = parse_whole(text.strip())
    return Readings(counters={} if value is None else {"cpu.usage_seconds": value * 1e-9})


def parse_memory_stat(text: str) -> Readings:
    """Read memory.stat: events are counters, sizes are levels. Sums over children (total_...) are left out."""
    readings = Readings()
    for name, value in pairs(text):
        if not name.startswith(("total_", "hierarchical_")):
            grows = bool(_MEMORY_EVENTS.fullmatch(name))
            (readings.counters if grows else readings.levels)[f"memory.{name}"] = value
    return readings


def parse_memory_usage(text: str) -> Readings:
    """Read memory.current of version 2 or memory.usage_in_bytes of version 1."""
    value = parse_whole(text.strip())
    return Readings(levels={} if value is None else {"memory.usage": value})


def parse_limit_hits(text: str) -> Readings:
    """Read memory.failcnt of version 1: allocations that met the limit."""
    value = parse_whole(text.strip())
    return Readings(counters={} if value is None else {"memory.limit_hits": value})


def parse_memory_events(text: str) -> Readings:
    """Read memory.events of version 2."""
    readings = Readings(counters={f"memory.events_{name}": value for name, value in pairs(text)})
    if "memory.events_max" in readings.counters:
        readings.counters["memory.limit_hits"] = readings.counters.pop("memory.events_max")
    return readings


def parse_io_stat(text: str) -> Readings:
    """Read io.stat of version 2: sums over devices."""
    names = {"rbytes": "read_bytes", "wbytes": "written_bytes", "rios": "reads", "wios": "writes"}
    readings = Readings()
    for key, number in re.findall(r"\b([rw](?:bytes|ios))=(\d{1,20})\b", text[:1_000_000]):
        name = f"io.{names[key]}"
        readings.counters[name] = readings.counters.get(name, 0.0) + float(number)
    return readings


def _parse_blkio(text: str, read: str, write: str) -> Readings:
    readings = Readings()
    for kind, number in re.findall(r"^\d+:\d+ (Read|Write) (\d{1,20})$", text[:1_000_000], re.MULTILINE):
        name = f"io.{read if kind == 'Read' else write}"
        readings.counters[name] = readings.counters.get(name, 0.0) + float(number)
    return readings


def _pressure(kind: str) -> Parser:
    def parse(text: str) -> Readings:
        totals = parse_pressure(text).counters
        return Readings(counters={f"pressure.{kind}.{name}": value for name, value in totals.items()})

    return parse


GROUP_FILES: dict[str, Parser] = {
    "cpu.stat": parse_cpu_stat,
    "cpuacct.stat": parse_cpuacct_stat,
    "cpuacct.usage": parse_cpuacct_usage,
    "memory.stat": parse_memory_stat,
    "memory.current": parse_memory_usage,
    "memory.usage_in_bytes": parse_memory_usage,
    "memory.events": parse_memory_events,
    "memory.failcnt": parse_limit_hits,
    "io.stat": parse_io_stat,
    "blkio.throttle.io_service_bytes_recursive": lambda text: _parse_blkio(text, "read_bytes", "written_bytes"),
    "blkio.throttle.io_serviced_recursive": lambda text: _parse_blkio(text, "reads", "writes"),
    "cpu.pressure": _pressure("cpu"),
    "memory.pressure": _pressure("memory"),
    "io.pressure": _pressure("io"),
}
"""Files of a group -> their readers; later files win where two have the same name."""


def parse_thread_schedule(text: str) -> Readings:
    """Read schedstat of a thread: time on a processor, time ready without one, and timeslices."""
    values = [parse_whole(number) for number in text.split()[:3]]
    if len(values) < 3 or None in values:
        return Readings()
    run, wait, slices = (float(value or 0) for value in values)
    return Readings(counters={"run_seconds": run * 1e-9, "wait_seconds": wait * 1e-9, "timeslices": slices})


def parse_process_stat(text: str) -> Readings:
    """Read stat of a process: page faults, processor time, and time that it waited for disks."""
    fields = text.rpartition(")")[2].split()
    # field numbers of proc(5), where the state is number 3
    places = {"minor_faults": (10, 1.0), "major_faults": (12, 1.0)}
    places |= {
        name: (place, 1 / TICKS_PER_SECOND)
        for name, place in (("user_seconds", 14), ("system_seconds", 15), ("disk_wait_seconds", 42))
    }
    readings = Readings()
    for name, (place, unit) in places.items():
        if len(fields) > place - 3 and (value := parse_whole(fields[place - 3])) is not None:
            readings.counters[name] = value * unit
    if len(fields) > 21 and (pages := parse_whole(fields[21])) is not None:
        readings.levels["resident_pages"] = pages
    if len(fields) > 17 and (threads := parse_whole(fields[17])) is not None:
        readings.levels["threads"] = threads
    return readings


def parse_process_io(text: str) -> Readings:
    """Read io of a process: bytes and calls of reads and writes."""
    return Readings(counters=dict(pairs(text)))


_SWITCHES = re.compile(r"^((?:non)?voluntary_ctxt_switches):\s+([0-9]{1,20})$", re.MULTILINE)


def parse_process_status(text: str) -> Readings:
    """Read the context switches of status of a process."""
    return Readings(counters={name: float(number) for name, number in _SWITCHES.findall(text)})
