"""Readers of the counters and levels of Linux, its control groups and processes: pure functions of one file's text.

A counter grows, and its rate is the metric; a level is the metric itself. Lines that do not match are skipped, because
kernels add and drop lines. Source: Linux, Documentation/filesystems/proc.rst, accounting/psi.rst,
admin-guide/iostats.rst, admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
_TICK = 0.01
"""USER_HZ in seconds, the unit of /proc/stat and /proc/<pid>/stat on all current architectures."""
_SECTOR = 512.0
_MAX_NAMES = 4096
"""Lines of one file that are read at most."""
_MAX_SIZE = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9_.()\-:]{1,64}")
_WHOLE = re.compile(r"[0-9]{1,20}")
_PAIR = re.compile(r"^([A-Za-z0-9_.()\-]{1,64}):?[ \t]+([0-9]{1,20})(?![^\s])", re.MULTILINE)

Names = Mapping[str, tuple[str, float]]
"""Name in a file -> name of the metric and its unit."""


@dataclass
class Readings:
    """Counters and levels of one file, by name."""

    counters: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)


Parser = Callable[[str], Readings]


def _whole(text: str) -> float | None:
    """Return a whole number of at most 20 digits as it stands, else None."""
    return float(text) if _WHOLE.fullmatch(text) else None


def _lines(text: str) -> Iterator[list[str]]:
    for line in text.splitlines()[:_MAX_NAMES]:
        fields = line.split()
        if len(fields) >= 2 and len(line) < 100_000:
            yield fields


def _add(totals: dict[str, float], words: Sequence[str], places: Mapping[int, str], units: Mapping[str, float]) -> None:
    """Add the numbers at some places of a line to totals; `units` are those of names by their ending."""
    for place, name in places.items():
        if place < len(words) and (value := _whole(words[place])) is not None:
            unit = next((unit for ending, unit in units.items() if name.endswith(ending)), 1.0)
            totals[name] = totals.get(name, 0.0) + value * unit


def _pairs(levels: str = r"(?!)", *, prefix: str = "") -> Parser:
    """Return a reader of lines such as `pgfault 12` and `MemFree: 12 kB`; names that match `levels` are levels."""

    def parse(text: str) -> Readings:
        readings = Readings()
        for name, number in _PAIR.findall(text)[:_MAX_NAMES]:
            target = readings.levels if re.fullmatch(levels, name) else readings.counters
            target[f"{prefix}{name}"] = float(number)
        return readings

    return parse


def _named(names: Names) -> Parser:
    """Return a reader of the lines of some names, which are counters."""
    return _sums(rf"^({'|'.join(names)}):?[ \t]+([0-9]{{1,20}})$", names)


def _sums(pattern: str, names: Names) -> Parser:
    """Return a reader of a name and a number wherever a pattern matches, added up by name."""
    compiled = re.compile(pattern, re.MULTILINE)

    def parse(text: str) -> Readings:
        readings = Readings()
        for key, number in compiled.findall(text[:_MAX_SIZE]):
            name, unit = names[key]
            readings.counters[name] = readings.counters.get(name, 0.0) + float(number) * unit
        return readings

    return parse


def _parse_usage(text: str) -> Readings:
    """Read memory.current, one number."""
    value = _whole(text.strip())
    return Readings(levels={} if value is None else {"memory.usage": value})


def _pressure(prefix: str = "") -> Parser:
    """Return a reader of pressure stall information: seconds in which some or all tasks waited."""
    names = {kind: (f"{prefix}{kind}_seconds", 1e-6) for kind in ("some", "full")}
    return _sums(r"^(some|full) [^\n]*\btotal=([0-9]{1,20})$", names)


def _parse_stat(text: str) -> Readings:
    """Read /proc/stat: seconds of each processor and mode, interrupts, context switches, processes."""
    readings = Readings()
    for fields in _lines(text):
        name = fields[0]
        if re.fullmatch(r"cpu[0-9]{0,5}", name):
            _add(readings.counters, fields[1:], dict(enumerate(f"{name}.{mode}" for mode in CPU_MODES)), {"": _TICK})
        elif name in ("intr", "ctxt", "processes", "softirq"):
            _add(readings.counters, fields, {1: name}, {})
        elif name in ("procs_running", "procs_blocked"):
            _add(readings.levels, fields, {1: name}, {})
    return readings


_DISK_FIELDS = (
    *("reads", "reads_merged", "read_bytes", "read_seconds"),
    *("writes", "writes_merged", "written_bytes", "write_seconds"),
    *("in_flight", "busy_seconds", "queue_seconds"),
    *("discards", "discards_merged", "discarded_bytes", "discard_seconds", "flushes", "flush_seconds"),
)


def _parse_diskstats(text: str) -> Readings:
    """Read /proc/diskstats: sums over disks. Partitions, loops and disks without any access are left out."""
    readings = Readings()
    disks: list[str] = []
    for fields in _lines(text):
        if len(fields) < 14:
            continue
        name = fields[2]
        is_part = any(name.startswith(disk) and name != disk for disk in disks)
        if is_part or re.match(r"(loop|ram|zram|sr|fd)\d", name) or not any(map(_whole, fields[3:])):
            continue
        disks.append(name)
        _add(readings.counters, fields, dict(enumerate(_DISK_FIELDS, 3)), {"bytes": _SECTOR, "seconds": 1e-3})
    if "in_flight" in readings.counters:
        readings.levels["in_flight"] = readings.counters.pop("in_flight")
    return readings


def _parse_net_dev(text: str) -> Readings:
    """Read /proc/net/dev: received and sent on the loopback interface, and on all others together."""
    readings = Readings()
    for line in text.splitlines()[:_MAX_NAMES]:
        name, colon, tail = line.partition(":")
        words = tail.split()
        if colon and len(words) >= 16:
            where = "loopback" if name.strip() == "lo" else "network"
            for direction, start in (("received", 0), ("sent", 8)):
                names = (f"{where}.{direction}_{key}" for key in ("bytes", "packets", "errors", "drops"))
                _add(readings.counters, words, dict(enumerate(names, start)), {})
    return readings


def _parse_interrupts(text: str) -> Readings:
    """Read /proc/interrupts or /proc/softirqs: sums over processors, by kind or by the name of the device."""
    readings = Readings()
    for line in text.splitlines()[:_MAX_NAMES]:
        name, _, tail = line.partition(":")
        counts: list[float] = []
        words = tail.split()
        for word in words:
            if (value := _whole(word)) is None:
                break
            counts.append(value)
        name = words[-1] if name.strip().isdigit() and len(words) > len(counts) else name.strip()
        if counts and _NAME.fullmatch(name):
            readings.counters[name] = readings.counters.get(name, 0.0) + sum(counts)
    return readings


def _parse_loadavg(text: str) -> Readings:
    """Read /proc/loadavg: tasks that run or are ready, and all tasks."""
    match = re.match(r"\S+ \S+ \S+ (\d{1,9})/(\d{1,9}) ", text)
    return Readings(levels={"running": float(match[1]), "tasks": float(match[2])}) if match else Readings()


def _parse_tcp(text: str) -> Readings:
    """Read /proc/net/snmp or netstat: pairs of lines, names and numbers. Values that can fall are levels."""
    readings = Readings()
    for names, numbers in pairwise(text.splitlines()[:_MAX_NAMES]):
        head, fields, values = names.split(":")[0], names.split()[1:], numbers.split()[1:]
        if head not in ("Tcp", "Udp", "TcpExt", "Ip") or numbers.split(":")[0] != head or len(fields) != len(values):
            continue
        for name, text_value in zip(fields, values, strict=True):
            value = _whole(text_value)
            if value is not None and _NAME.fullmatch(name) and not name.startswith(("Rto", "Max", "Forw")):
                target = readings.levels if name == "CurrEstab" else readings.counters
                target[f"{head}.{name}"] = value
    return readings


def parse_thread_schedule(text: str) -> Readings:
    """Read schedstat of a thread: time on a processor, time ready without one, and timeslices."""
    readings, places = Readings(), {0: "run_seconds", 1: "wait_seconds", 2: "timeslices"}
    _add(readings.counters, text.split(), places, {"_seconds": 1e-9})
    return readings if len(readings.counters) == len(places) else Readings()


def _parse_process_stat(text: str) -> Readings:
    """Read stat of a process: page faults, processor time, and time that it waited for disks."""
    # places after the name in brackets, where the state, field 3 of proc(5), is the first
    words, readings = text.rpartition(")")[2].split(), Readings()
    times = {11: "user_seconds", 12: "system_seconds", 39: "disk_wait_seconds"}
    _add(readings.counters, words, {7: "minor_faults", 9: "major_faults", **times}, {"_seconds": _TICK})
    _add(readings.levels, words, {21: "resident_pages", 17: "threads"}, {})
    return readings


SYSTEM_FILES: dict[str, tuple[str, Parser]] = {
    "proc/stat": ("stat", _parse_stat),
    # pages in each state are levels, and events are counters
    "proc/vmstat": ("vmstat", _pairs(r"nr_(?!(dirtied|written|vmscan_write)$).*")),
    "proc/meminfo": ("meminfo", _pairs(r".*")),
    "proc/diskstats": ("disk", _parse_diskstats),
    "proc/net/dev": ("net", _parse_net_dev),
    "proc/net/snmp": ("net", _parse_tcp),
    "proc/net/netstat": ("net", _parse_tcp),
    "proc/interrupts": ("interrupt", _parse_interrupts),
    "proc/softirqs": ("softirq", _parse_interrupts),
    "proc/loadavg": ("load", _parse_loadavg),
    **{f"proc/pressure/{kind}": (f"pressure.{kind}", _pressure()) for kind in ("cpu", "memory", "io")},
}
"""Files of the machine -> prefixes of their metrics, and their readers."""
_EVENTS = r"pg[a-z_]+|workingset_(refault|activate|restore)\w*|workingset_nodereclaim|thp_\w+|.*fault\w*"
GROUP_FILES: dict[str, Parser] = {
    "cpu.stat": _named(
        {
            **{f"{name}_usec": (f"cpu.{name}_seconds", 1e-6) for name in ("usage", "user", "system", "throttled")},
            "burst_usec": ("cpu.burst_seconds", 1e-6),
            "nr_throttled": ("cpu.throttled_periods", 1.0),
            "nr_periods": ("cpu.periods", 1.0),
        }
    ),
    # events are counters, sizes are levels
    "memory.stat": _pairs(rf"(?!({_EVENTS})$).*", prefix="memory."),
    "memory.current": _parse_usage,
    "memory.events": _named(
        {
            **{name: (f"memory.events_{name}", 1.0) for name in ("low", "high", "oom", "oom_kill")},
            "max": ("memory.limit_hits", 1.0),
        }
    ),
    "io.stat": _sums(
        r"\b([rw](?:bytes|ios))=(\d{1,20})\b",
        {
            **{"rbytes": ("io.read_bytes", 1.0), "wbytes": ("io.written_bytes", 1.0)},
            **{"rios": ("io.reads", 1.0), "wios": ("io.writes", 1.0)},
        },
    ),
    **{f"{kind}.pressure": _pressure(f"pressure.{kind}.") for kind in ("cpu", "memory", "io")},
}
"""Files of a group -> their readers."""
PROCESS_FILES: dict[str, Parser] = {
    "stat": _parse_process_stat,
    "io": _pairs(),
    "status": _named({name: (name, 1.0) for name in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")}),
}
"""Files of a process -> their readers."""
