"""Control groups of version 2 for tenants, or none where the system does not permit them.

A campaign has one base group below the nearest group that permits it, so that limits of the caller still hold. Below
it, the host group carries the limit that tenants share, and each tenant has a group of its own.
Source: Linux, Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX = "perfcast-interference-"
CPU, MEMORY = "cpu", "memory"
_PERIOD_US = 100_000


def find_tree(mounts: str) -> Path | None:
    """Return the folder of the tree of control groups in the text of /proc/self/mounts; None without one."""
    lines = (line.split() for line in mounts.splitlines())
    return next((Path(fields[1]) for fields in lines if len(fields) > 3 and fields[2] == "cgroup2"), None)


@dataclass(frozen=True)
class ControlGroup:
    """One group; without a folder, processes are in none, and nothing can be limited."""

    folder: Path | None

    @property
    def limits(self) -> set[str]:
        """Resources that can be limited here: cpu, memory."""
        return {name for name in (CPU, MEMORY) if self.folder and (self.folder / f"{name}.max").exists()}

    def create_child(self, name: str) -> ControlGroup:
        """Create a group below this one."""
        if self.folder is None:
            return self
        for controller in (CPU, MEMORY, "io"):
            with suppress(OSError):  # not permitted, or absent
                (self.folder / "cgroup.subtree_control").write_text(f"+{controller}")
        (self.folder / name).mkdir(exist_ok=True)
        return ControlGroup(self.folder / name)

    def limit_cpu(self, cores: float) -> None:
        """Limit the processor time per wall time to a number of cores."""
        self.write("cpu.max", f"{round(cores * _PERIOD_US)} {_PERIOD_US}")

    def anonymous_bytes(self) -> int:
        """Return the memory that cannot be dropped: that of no file."""
        assert self.folder is not None
        return int(dict(line.split() for line in (self.folder / "memory.stat").read_text().splitlines())["anon"])

    def write(self, name: str, text: str) -> None:
        """Write a file of the group; nothing without a folder."""
        if self.folder is not None:
            (self.folder / name).write_text(text)


def remove_group(folder: Path | None, patience: float = 3.0) -> None:
    """Kill the processes of a group and of those below it, and remove the folders.

    Units: `patience` in seconds; a killed process needs some time to end.
    """
    end = time.monotonic() + patience
    while folder is not None and folder.is_dir() and time.monotonic() < end:
        with suppress(OSError):
            (folder / "cgroup.kill").write_text("1")
        for path in sorted([folder, *(path for path in folder.rglob("*") if path.is_dir())], reverse=True):
            with suppress(OSError):
                path.rmdir()
        time.sleep(0.02)


def open_base(tree: Path | None, memberships: str, name: str) -> ControlGroup:
    """Create the base group near that of the caller; no folder where nothing permits it.

    A group has controllers where its parent hands them down; one without still gives the pressure of each tenant.
    `memberships` is the text of /proc/self/cgroup.
    """
    current = next((line.removeprefix("0::/") for line in memberships.splitlines() if line.startswith("0::/")), None)
    if tree is None or current is None:
        return ControlGroup(None)
    parents = [path for path in (tree / current, *(tree / current).parents) if path.is_relative_to(tree)]
    attempts = ((parent / name, wanted) for wanted in ({CPU, MEMORY}, set()) for parent in parents)
    return ControlGroup(next((path for path, wanted in attempts if _create_group(path, wanted)), None))


def _create_group(path: Path, wanted: set[str]) -> bool:
    """Create a group; return whether processes can be moved there, and whether it has the wanted controllers."""
    with suppress(OSError):
        path.mkdir(exist_ok=True)
        controllers = set((path / "cgroup.controllers").read_text().split())
        if wanted <= controllers and os.access(path / "cgroup.procs", os.W_OK):
            return True
    with suppress(OSError):
        path.rmdir()
    return False
