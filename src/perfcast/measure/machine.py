"""Read the characteristics of the machine at hand, without anything that names it."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

_CACHES = {"L1d cache": "l1d_kib", "L1i cache": "l1i_kib", "L2 cache": "l2_kib", "L3 cache": "l3_kib"}
_UNIT_KIB = {"B": 1 / 1024, "KiB": 1.0, "K": 1.0, "MiB": 1024.0, "M": 1024.0, "GiB": 1024.0**2, "G": 1024.0**2}


def _lscpu() -> dict[str, str]:
    """Return lscpu's fields, flat; an empty dict where there is no lscpu."""
    try:
        text = subprocess.run(
            ["lscpu", "-J"], capture_output=True, text=True, check=True, timeout=20, env={**os.environ, "LC_ALL": "C"}
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    fields: dict[str, str] = {}

    def walk(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            fields[entry["field"].rstrip(":")] = str(entry.get("data") or "")
            walk(entry.get("children", []))

    walk(json.loads(text)["lscpu"])
    return fields


def _total_kib(text: str) -> float | None:
    """Return KiB of '4 MiB (2 instances)': lscpu states the sum over instances."""
    match = re.match(r"([\d.]+)\s*([KMG]i?B?|B)", text)
    return float(match[1]) * _UNIT_KIB[match[2]] if match and match[2] in _UNIT_KIB else None


def _memory_gib() -> float | None:
    path = Path("/proc/meminfo")
    match = re.search(r"MemTotal:\s+(\d+) kB", path.read_text()) if path.exists() else None
    return round(int(match[1]) / 1024**2, 1) if match else None


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


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
        "threads_per_core": _count(fields.get("Thread(s) per core")),
        "sockets": _count(fields.get("Socket(s)")),
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
