"""Files of a measurement: the table, and the description of the machine that was measured."""

from __future__ import annotations

import gzip
import os
import platform
import re
from pathlib import Path
from typing import Any

import pandas as pd
import psutil  # type: ignore[import-untyped]

from perfcast.microbench.gpu import gpu_as_machine
from perfcast.microbench.hardware_info import readings
from perfcast.microbench.hardware_info.readings import FAILURES, run_command
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, check_writable, write_json

_CACHES = {"L1d cache": "l1d_kib", "L1i cache": "l1i_kib", "L2 cache": "l2_kib", "L3 cache": "l3_kib"}


def require_clean(clean: int, measured: int) -> None:
    """Raise UserError when other work interrupted every configuration."""
    if not clean:
        raise UserError(
            "a measurement needs an idle core",
            f"other work interrupted every one of {measured} configurations",
            "try again on an idle machine, or with a larger --budget-minutes",
        )


def check_out(folder: Path, name: str) -> None:
    """Raise what `write_measurement` would when it cannot write, before anything is measured."""
    for ending in (".csv.gz", ".json"):
        check_writable(folder / f"{name}{ending}")


def write_measurement(folder: Path, name: str, frame: pd.DataFrame, device: str = "cpu") -> None:
    """Write <name>.csv.gz and <name>.json, the description of the machine, into the folder."""
    with atomic_path(folder / f"{name}.csv.gz") as path:
        # no file name and no time in the header, so that equal tables give equal bytes
        path.write_bytes(gzip.compress(frame.to_csv(index=False, lineterminator="\n").encode(), mtime=0))
    write_json(folder / f"{name}.json", describe_machine() | (gpu_as_machine() if device == "cuda" else {}))


def _lscpu() -> dict[str, str]:
    """Return the fields of lscpu; an empty dict when it fails."""
    try:
        return dict(readings.read_fields(run_command))
    except FAILURES:
        return {}


def _total_kib(text: str) -> float | None:
    """Return KiB of '4 MiB (2 instances)': the sum over instances."""
    size = readings.parse_cache_size(text)
    return size.kib if size else None


def describe_machine() -> dict[str, Any]:
    """Return processor, caches, memory, instruction sets and library versions of this machine.

    Units: caches KiB summed over the machine, memory GiB. Unknown values are None. Host name, addresses
    and serial numbers are never read.
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
        "threads_per_core": readings.parse_count(fields.get("Thread(s) per core", "")),
        "sockets": readings.parse_count(fields.get("Socket(s)", "")),
        "virtual": fields.get("Hypervisor vendor") or None,
        **{name: _total_kib(fields.get(label, "")) for label, name in _CACHES.items()},
        "memory_gib": round(psutil.virtual_memory().total / 1024**3, 1),
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
