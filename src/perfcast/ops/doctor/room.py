"""Disk, memory and cores: as much as the default run takes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from perfcast.ops.doctor.base import BROKEN, CARE, FINE, Finding, Place

ORDER = 40
DISK = 1 << 30
"""Free bytes that the default run should find: its results are 400 MB, with copies of models in MLflow's store."""
MEMORY = 4 << 30
"""Bytes of available memory that two jobs at a time need."""
_GIB = float(1 << 30)


def look(place: Place) -> list[Finding]:
    """Measure what is free where results go, what memory is available, and how many cores this process may use."""
    folder = next(one for one in (place.results, place.project) if one.is_dir())
    free = shutil.disk_usage(folder).free
    findings = [_disk(folder, free)]
    memory = available_memory()
    if memory is not None:
        findings.append(_memory(memory))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [*findings, Finding("cores", FINE, f"{cores}; snakemake --cores N uses fewer")]


def _disk(folder: Path, free: int) -> Finding:
    if not os.access(folder, os.W_OK):
        return Finding("disk", BROKEN, f"{folder.name or folder} cannot be written to", "change its permissions")
    told = f"{free / _GIB:.1f} GiB free"
    if free < DISK:
        return Finding("disk", BROKEN, f"{told}, {DISK / _GIB:g} GiB are needed", "make room, or set results elsewhere")
    return Finding("disk", FINE, told)


def _memory(available: int) -> Finding:
    told = f"{available / _GIB:.1f} GiB available"
    if available < MEMORY:
        remedy = "run one job at a time: snakemake --cores 1"
        return Finding("memory", CARE, f"{told}, two jobs at a time need {MEMORY / _GIB:g} GiB", remedy)
    return Finding("memory", FINE, told)


def available_memory(proc: Path = Path("/proc/meminfo")) -> int | None:
    """Return the bytes that could be used without swapping, None where the system does not say."""
    if not proc.is_file():
        return None
    lines = dict(line.split(":", 1) for line in proc.read_text().splitlines() if ":" in line)
    words = lines.get("MemAvailable", "").split()
    return int(words[0]) * 1024 if words else None
