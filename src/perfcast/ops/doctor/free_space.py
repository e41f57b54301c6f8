"""Check of disk, memory and cores against the needs of the default run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from perfcast.ops.doctor.findings import BROKEN, CARE, FINE, Finding, ProjectPlace

DISK = 1 << 30
"""Free bytes that the default run needs: its results are 400 MB, with copies of models in MLflow's store."""
MEMORY = 4 << 30
"""Bytes of available memory that two jobs at a time need."""
_GIB = float(1 << 30)


def check(place: ProjectPlace) -> list[Finding]:
    """Measure the free space of the results folder, the available memory and the usable cores."""
    folder = next(path for path in (place.results, place.project) if path.is_dir())
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
    fact = f"{free / _GIB:.1f} GiB free"
    if free < DISK:
        return Finding("disk", BROKEN, f"{fact}, {DISK / _GIB:g} GiB are needed", "make room, or set results elsewhere")
    return Finding("disk", FINE, fact)


def _memory(available: int) -> Finding:
    fact = f"{available / _GIB:.1f} GiB available"
    if available < MEMORY:
        remedy = "run one job at a time: snakemake --cores 1"
        return Finding("memory", CARE, f"{fact}, two jobs at a time need {MEMORY / _GIB:g} GiB", remedy)
    return Finding("memory", FINE, fact)


def available_memory(proc: Path = Path("/proc/meminfo")) -> int | None:
    """Return the bytes that could be used without swapping, None on systems without /proc."""
    if not proc.is_file():
        return None
    lines = dict(line.split(":", 1) for line in proc.read_text().splitlines() if ":" in line)
    words = lines.get("MemAvailable", "").split()
    return int(words[0]) * 1024 if words else None
