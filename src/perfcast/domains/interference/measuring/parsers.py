"""Readers of the counters and levels of Linux: pure functions of the text of one file.

A counter grows, and its rate is the metric; a level is the metric itself. Lines that do not match are skipped, because
kernels add and drop lines. Source: Linux, Documentation/filesystems/proc.rst, accounting/psi.rst,
scheduler/sched-stats.rst and admin-guide/iostats.rst.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
TICKS_PER_SECOND = 100.0
"""USER_HZ, the unit of /proc/stat and /proc/<pid>/stat on all current architectures."""
_SECTOR = 512.0
_MAX_NAMES = 4096
"""Lines of one file that are read at most."""
_NAME = re.compile(r"[A-Za-z0-9_.()\-:]{1,64}")
_WHOLE = re.compile(r"[0-9]{1,20}")
_PAIR = re.compile(r"^([A-Za-z0-9_.()\-]{1,64}):?[ \t]+([0-9]{1,20})(?![^\s])", re.MULTILINE)


@dataclass
class Readings:
    """Counters and levels of one file, by name."""

    counters: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)


Parser = Callable[[str], Readings]


def parse_whole(text: str) -> float | None:
    """Return a whole number of at most 20 digits as it stands, else None."""
    return float(text) if _WHOLE.fullmatch(text) else None


def _lines(text: str) -> Iterator[list[str]]:
    for line in text.splitlines()[:_MAX_NAMES]:
        fields = line.split()
        if len(fields) >= 2 and len(line) < 100_000:
            yield fields


def pairs(text: str) -> list[tuple[str, float]]:
    """Return name and number of lines such as `pgfault 12` and `MemFree: 12 kB`."""
    return [(name, float(number)) for name, number in _PAIR.findall(text)[:_MAX_NAMES]]


def parse_stat(text: str) -> Readings:
    """Read /proc/stat: seconds of each processor and mode, interrupts, context switches, processes."""
    readings = Readings()
    for fields in _lines(text):
        name = fields[0]
        if re.fullmatch(r"cpu[0-9]{0,5}", name):
            for mode, number in zip(CPU_MODES, fields[1:], strict=False):
                if (value := parse_whole(number)) is not None:
                    readings.counters[f"{name}.{mode}"] = value / TICKS_PER_SECOND
        elif (value := parse_whole(fields[1])) is not None:
            if name in ("intr", "ctxt", "processes", "softirq"):
                readings.counters[name] = value
            elif name in ("procs_running", "procs_blocked"):
                readings.levels[name] = value
    return readings


def parse_vmstat(text: str) -> Readings:
    """Read /proc/vmstat: pages in each state (nr_...) are levels, and events are counters."""
    readings = Readings()
    for name, value in pairs(text):
        grows = not name.startswith("nr_") or name in ("nr_dirtied", "nr_written", "nr_vmscan_write")
        (readings.counters if grows else readings.levels)[name] = value
    return readings


def parse_meminfo(text: str) -> Readings:
    """Read /proc/meminfo, in KiB."""
    return Readings(levels=dict(pairs(text)))


_DISK_FIELDS = (
    *("reads", "reads_merged", "read_bytes", "read_seconds"),
    *("writes", "writes_merged", "written_bytes", "write_seconds"),
    *("in_flight", "busy_seconds", "queue_seconds"),
    *("discards", "discards_merged", "discarded_bytes", "discard_seconds", "flushes", "flush_seconds"),
)


def parse_diskstats(text: str) -> Readings:
    """Read /proc/diskstats: sums over disks. Partitions, loops and disks without any access are left out."""
    readings = Readings()
    disks: list[str] = []
    for fields in _lines(text):
        if len(fields) < 14:
            continue
        name, values = fields[2], [parse_whole(number) for number in fields[3:]]
        is_part = any(name.startswith(disk) and name != disk for disk in disks)
        if is_part or re.match(r"(loop|ram|zram|sr|fd)\d", name) or not any(values):
            continue
        disks.append(name)
        for key, value in zip(_DISK_FIELDS, values, strict=False):
            if value is None:
                continue
            unit = _SECTOR if key.endswith("bytes") else 1e-3 if key.endswith("seconds") else 1.0
            target = readings.levels if key == "in_flight" else readings.counters
            target[key] = target.get(key, 0.0) + value * unit
    return readings


_NET_FIELDS = ("bytes", "packets", "errors", "drops")


def parse_net_dev(text: str) -> Readings:
    """Read /proc/net/dev: received and sent on the loopback interface, and on all others together."""
    readings = Readings()
    for line in text.splitlines()[:_MAX_NAMES]:
        name, colon, tail = line.partition(":")
        values = [parse_whole(number) for number in tail.split()]
        if not colon or len(values) < 16:
            continue
        where = "loopback" if name.strip() == "lo" else "network"
        for direction, start in (("received", 0), ("sent", 8)):
            for key, value in zip(_NET_FIELDS, values[start:], strict=False):
                if value is not None:
                    full = f"{where}.{direction}_{key}"
                    readings.counters[full] = readings.counters.get(full, 0.0) + value
    return readings


def parse_interrupts(text: str) -> Readings:
    """Read /proc/interrupts or /proc/softirqs: sums over processors, by kind or by the name of the device."""
    readings = Readings()
    for line in text.splitlines()[:_MAX_NAMES]:
        name, colon, tail = line.partition(":")
        if not colon:
            continue
        counts: list[float] = []
        words = tail.split()
        for word in words:
            if (value := parse_whole(word)) is None:
                break
            counts.append(value)
        name = words[-1] if name.strip().isdigit() and len(words) > len(counts) else name.strip()
        if counts and _NAME.fullmatch(name):
            readings.counters[name] = readings.counters.get(name, 0.0) + sum(counts)
    return readings


_SCHEDULER_FIELDS = {
    0: "yields",
    2: "schedules",
    3: "idle_schedules",
    4: "wakeups",
    5: "local_wakeups",
    6: "run_seconds",
    7: "wait_seconds",
    8: "timeslices",
}


def parse_schedstat(text: str) -> Readings:
    """Read /proc/schedstat, version 15 and later: sums over processors."""
    readings = Readings()
    for fields in _lines(text):
        if not re.fullmatch(r"cpu[0-9]{1,5}", fields[0]) or len(fields) < 10:
            continue
        for index, key in _SCHEDULER_FIELDS.items():
            if (value := parse_whole(fields[1 + index])) is not None:
                unit = 1e-9 if key.endswith("seconds") else 1.0
                readings.counters[key] = readings.counters.get(key, 0.0) + value * unit
    return readings


def parse_pressure(text: str) -> Readings:
    """Read a file of pressure stall information: seconds in which some or all tasks waited."""
    readings = Readings()
    for fields in _lines(text):
        total = fields[-1].removeprefix("total=")
        if fields[0] in ("some", "full") and (value := parse_whole(total)) is not None:
            readings.counters[f"{fields[0]}_seconds"] = value * 1e-6
    return readings


def parse_loadavg(text: str) -> Readings:
    """Read /proc/loadavg: tasks that run or are ready, and all tasks."""
    match = re.match(r"\S+ \S+ \S+ (\d{1,9})/(\d{1,9}) ", text)
    return Readings(levels={"running": float(match[1]), "tasks": float(match[2])}) if match else Readings()


def parse_clocks(text: str) -> Readings:
    """Read /proc/cpuinfo: mean and lowest clock in MHz."""
    texts = re.findall(r"^cpu MHz\s*:\s*(\d{1,6}(?:\.\d{1,9})?)\s*$", text[:2_000_000], re.MULTILINE)
    clocks = [float(value) for value in texts]
    return Readings(levels={"mean": sum(clocks) / len(clocks), "lowest": min(clocks)}) if clocks else Readings()


def parse_tcp(text: str) -> Readings:
    """Read /proc/net/snmp or netstat: pairs of lines, names and numbers. Values that can fall are levels."""
    readings = Readings()
    lines = text.splitlines()[:_MAX_NAMES]
    for names, numbers in pairwise(lines):
        head, fields, values = names.split(":")[0], names.split()[1:], numbers.split()[1:]
        if head not in ("Tcp", "Udp", "TcpExt", "Ip") or numbers.split(":")[0] != head or len(fields) != len(values):
            continue
        for field_name, text_value in zip(fields, values, strict=True):
            value = parse_whole(text_value)
            if value is not None and _NAME.fullmatch(field_name) and not field_name.startswith(("Rto", "Max", "Forw")):
                target = readings.levels if field_name == "CurrEstab" else readings.counters
                target[f"{head}.{field_name}"] = value
    return readings
