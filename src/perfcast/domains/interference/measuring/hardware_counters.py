"""Hardware counters of all processors, where the system shows them: perf_event_open(2) without a compiler.

Guests seldom see them. An event that cannot be opened on every processor is absent. Counts of events that share a
register are scaled by the time that they were counted, as `perf stat` does.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Sequence
from contextlib import suppress

_NUMBERS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319, "s390x": 331, "riscv64": 241}
"""Number of the system call by architecture."""
_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_LAST_LEVEL, _DATA_TLB, _MISS = 2, 3, 1 << 16
EVENTS: dict[str, tuple[int, int]] = {
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
    "cache_references": (_HARDWARE, 2),
    "cache_misses": (_HARDWARE, 3),
    "branches": (_HARDWARE, 4),
    "branch_misses": (_HARDWARE, 5),
    "stalled_cycles_frontend": (_HARDWARE, 7),
    "stalled_cycles_backend": (_HARDWARE, 8),
    "last_level_load_misses": (_CACHE, _LAST_LEVEL | _MISS),
    "data_tlb_load_misses": (_CACHE, _DATA_TLB | _MISS),
    "migrations": (_SOFTWARE, 4),
    "alignment_faults": (_SOFTWARE, 7),
}
"""Event -> type and configuration of linux/perf_event.h."""
_ATTRIBUTE_SIZE = 112
_WITH_TIMES = 0b11
"""The time that the event was enabled, and the time that it was counted, follow the count."""


class HardwareCounters:
    """Open events; calling the object returns their totals, as a `Sampler` reads them.

    Args:
        cpus: Processors to count on.
        events: Events by name, with type and configuration.
    """

    def __init__(self, cpus: Sequence[int], events: dict[str, tuple[int, int]] = EVENTS) -> None:
        self._files: dict[str, list[int]] = {}
        for name, (kind, configuration) in events.items():
            opened = [_open(kind, configuration, cpu) for cpu in cpus]
            files = [file for file in opened if file >= 0]
            if files and len(files) == len(opened):
                self._files[name] = files
            else:
                _close(files)

    @property
    def names(self) -> list[str]:
        """Names of the events that this system shows."""
        return sorted(self._files)

    def __call__(self) -> dict[str, float]:
        """Return the totals of all processors so far, by `perf.<event>`."""
        totals = {}
        for name, files in self._files.items():
            with suppress(OSError, struct.error):
                totals[f"perf.{name}"] = sum(scale_count(os.read(file, 24)) for file in files)
        return totals

    def close(self) -> None:
        """Close all events."""
        for files in self._files.values():
            _close(files)
        self._files = {}


def scale_count(content: bytes) -> float:
    """Return a count for the whole time that its event was enabled, from the bytes that the system gives.

    Raises: struct.error for another length.
    """
    count, enabled, counted = struct.unpack("QQQ", content)
    return count * enabled / counted if counted else 0.0


def _open(kind: int, configuration: int, cpu: int) -> int:
    """Return the file of an event on one processor, -1 where it is refused."""
    number = _NUMBERS.get(platform.machine())
    if number is None:
        return -1
    attribute = struct.pack("IIQQQQ", kind, _ATTRIBUTE_SIZE, configuration, 0, 0, _WITH_TIMES).ljust(
        _ATTRIBUTE_SIZE, b"\0"
    )
    call = ctypes.CDLL(None, use_errno=True).syscall
    every_process, no_group, close_on_exec = -1, -1, 8
    return int(
        call(
            ctypes.c_long(number),
            ctypes.c_char_p(attribute),
            ctypes.c_int(every_process),
            ctypes.c_int(cpu),
            ctypes.c_int(no_group),
            ctypes.c_ulong(close_on_exec),
        )
    )


def _close(files: Sequence[int]) -> None:
    for file in files:
        os.close(file)
