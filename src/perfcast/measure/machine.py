"""Read the characteristics of the machine at hand, without anything that names it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from perfcast.this_machine import lscpu
from perfcast.this_machine.commands import FAILURES, run_command

_CACHES = {"L1d cache": "l1d_kib", "L1i cache": "l1i_kib", "L2 cache": "l2_kib", "L3 cache": "l3_kib"}


def _lscpu() -> dict[str, str]:
    """Return lscpu's fields, flat; an empty dict where there is no lscpu."""
    try:
        return dict(lscpu.read_fields(run_command))
    except FAILURES:
        return {}


def _total_kib(text: str) -> float | None:
    """Return KiB of '4 MiB (2 instances)': lscpu states the sum over instances."""
    size = lscpu.cache_size(text)
    return size.kib if size else None


def _memory_gib() -> float | None:
    path = Path("/proc/meminfo")
    match = re.search(r"MemTotal:\s+(\d+) kB", path.read_text()) if path.exists() else None
    return round(int(match[1]) / 1024**2, 1) if match else None


def describe_machine() -> dict[str, Any]:
    """Return processor, caches, memory, instruction sets and library versions of this machine.

    Units: caches KiB summed over the machine, memory GiB. What cannot be read is None. Host name, addresses and
    serial numbers are never read.
    """
    import numpy
    import torch

    fields = _lscpu()
    flags = sorted(
        flag for flag in fields.get("Flags", "").split() if re.match(r"(sse4|avx|amx|fma|neon|asimd|sve)", flag)
    )
    return {
        "cpu_model": fields.get("Model name", platform.machine()),
        "cpu_vendor": fields.get("Vendor ID"),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "threads_per_core": lscpu.count(fields.get("Thread(s) per core", "")),
        "sockets": lscpu.count(fields.get("Socket(s)", "")),
        "virtual": fields.get("Hypervisor vendor") or None,
        **{name: _total_kib(fields.get(label, "")) for label, name in _CACHES.items()},
        "memory_gib": _memory_gib(),
        "flags": flags,
        "kernel": platform.release().split("-")[0],
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
            "onednn": _library_version(torch.__config__.show(), r"MKL-DNN v([\d.]+)"),
            "mkl": _library_version(torch.__config__.show(), r"oneMKL|Math Kernel Library Version ([\d.]+)"),
        },
    }


def _library_version(text: str, pattern: str) -> str | None:
    match = re.search(pattern, text)
    return match[1] if match and match.groups() and match[1] else None
