"""Names of processes, by which a later process finds out whether they are gone."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path


def process_name(pid: int) -> str:
    """Name a process of this boot of this machine, without naming the machine: boot, process, its start, machine."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    start = Path(f"/proc/{pid}/stat")
    started = start.read_text().rpartition(")")[2].split()[19] if start.exists() else "?"
    return f"{boot.read_text().strip()[:8] if boot.exists() else '?'}:{pid}:{started}:{_machine_digest()}"


def _machine_digest() -> str:
    """Return a digest of this machine or container, which has its own process numbers; empty where there is no id."""
    path = Path("/etc/machine-id")
    known = path.read_text().strip() if path.exists() else ""
    return hashlib.sha256(f"perfcast {known} {platform.node()}".encode()).hexdigest()[:8] if known else ""


def is_gone(process: str) -> bool:
    """Return whether a process, by its name, ran on this machine and has ended; False where that is unknown."""
    if process.count(":") < 2:
        return False
    boot, pid, started, *machine = process.split(":")
    own_boot, _, _, own_machine = process_name(os.getpid()).split(":")
    if machine and machine[0] != own_machine:
        return False
    if boot != own_boot:
        return bool(machine and own_machine)  # before this machine was started again
    return process_name(int(pid)).split(":")[2] != started
