"""Control groups of tenants: version 2, version 1, or none where the system does not permit them.

A campaign has one base group below the nearest group that permits it, so that limits of the caller still hold. Below
it, the host group carries the limit that tenants share, and each tenant has a group of its own.
Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PREFIX = "perfcast-interference-"
CPU, MEMORY = "cpu", "memory"
_USED = frozenset({"cpu", "cpuacct", "memory", "blkio", "io"})
_PERIOD_US = 100_000


class Hierarchy(NamedTuple):
    """A mounted tree of groups. `current` is the folder of the calling process."""

    version: int
    mount: Path
    current: Path


def find_hierarchies(mounts: str, memberships: str) -> list[Hierarchy]:
    """Return the trees of groups that can measure or limit tenants.

    Args:
        mounts: Text of /proc/self/mounts.
        memberships: Text of /proc/self/cgroup.
    """
    own_paths: dict[str, str] = {}
    for line in memberships.splitlines():
        _, _, tail = line.partition(":")
        names, _, path = tail.partition(":")
        if path.startswith("/"):
            own_paths.update(dict.fromkeys(names.split(",") if names else ["unified"], path))
    trees = []
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 4 or fields[2] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if fields[2] == "cgroup2" else 1
        mount = Path(re.sub(r"\\040", " ", fields[1]))
        controllers = frozenset(fields[3].split(",")) & _USED if version == 1 else frozenset()
        name = next(iter(controllers), "") if version == 1 else "unified"
        if name and name in own_paths:
            trees.append(Hierarchy(version, mount, mount / own_paths[name].lstrip("/")))
    return trees


@dataclass(frozen=True)
class GroupFolders:
    """One group: version and folder in each tree."""

    folders: list[tuple[int, Path]]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Folder in each tree."""
        return tuple(path for _, path in self.folders)

    @property
    def limits(self) -> set[str]:
        """Resources that can be limited here: cpu, memory."""
        files = {CPU: ("cpu.max", "cpu.cfs_quota_us"), MEMORY: ("memory.max", "memory.limit_in_bytes")}
        return {name for name, known in files.items() if any(self._find(file) for file in known)}

    def create_child(self, name: str) -> GroupFolders:
        """Create a group below this one."""
        for version, folder in self.folders:
            for controller in ("cpu", "memory", "io") if version == 2 else ():
                with suppress(OSError):  # not permitted, or absent
                    (folder / "cgroup.subtree_control").write_text(f"+{controller}")
            (folder / name).mkdir(exist_ok=True)
        return GroupFolders([(version, folder / name) for version, folder in self.folders])

    def limit_cpu(self, cores: float) -> None:
        """Limit the processor time per wall time to a number of cores."""
        quota = round(cores * _PERIOD_US)
        if path := self._find("cpu.max"):
            path.write_text(f"{quota} {_PERIOD_US}")
        elif path := self._find("cpu.cfs_quota_us"):
            path.with_name("cpu.cfs_period_us").write_text(str(_PERIOD_US))
            path.write_text(str(quota))

    def raise_weight(self) -> None:
        """Have the group go before other work of the machine; tenants in it stay equal."""
        for name, value in (("cpu.weight", "10000"), ("cpu.shares", "102400")):
            if path := self._find(name):
                with suppress(OSError):
                    path.write_text(value)

    def limit_memory(self, size: int) -> None:
        """Limit the memory, page cache included, in bytes."""
        if path := self._find("memory.max") or self._find("memory.limit_in_bytes"):
            path.write_text(str(size))

    def anonymous_bytes(self) -> int | None:
        """Return the memory that cannot be dropped: that of no file; None where the system does not tell."""
        if path := self._find("memory.stat"):
            fields = dict(line.split(maxsplit=1) for line in path.read_text().splitlines() if " " in line)
            for name in ("anon", "total_rss"):
                if name in fields:
                    return int(fields[name])
        return None

    def add(self, process: int) -> None:
        """Move a process into the group; its future children follow."""
        for folder in self.paths:
            (folder / "cgroup.procs").write_text(str(process))

    def _find(self, name: str) -> Path | None:
        return next((folder / name for folder in self.paths if (folder / name).exists()), None)


def remove_folders(folders: Iterable[Path], patience: float = 3.0) -> bool:
    """Kill the processes of groups and remove their folders, children first; return whether all are gone.

    Units: `patience` in seconds; a killed process needs some time to end.
    """
    end = time.monotonic() + patience
    left = [folder for folder in folders if folder.is_dir()]
    while left:
        for folder in left:
            for child in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
                _remove_folder(child)
            _remove_folder(folder)
        left = [folder for folder in left if folder.is_dir()]
        if left and time.monotonic() > end:
            return False
        if left:
            time.sleep(0.02)
    return True


def _remove_folder(folder: Path) -> None:
    with suppress(OSError, ValueError):
        for process in (folder / "cgroup.procs").read_text().split():
            if int(process) not in (0, os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
    with suppress(OSError):  # processes end some time after the signal
        folder.rmdir()


def open_base(trees: Iterable[Hierarchy], name: str) -> GroupFolders:
    """Create the base group in every tree that permits it; no folders where none does.

    A tree of version 2 permits it where the parent hands its controllers down; one without controllers still gives the
    pressure of each group.
    """
    folders = []
    for version, mount, current in trees:
        parents = [path for path in (current, *current.parents) if path.is_relative_to(mount)]
        wanted: list[set[str]] = [{"cpu", "memory"}, set()] if version == 2 else [set()]
        attempts = ((parent / name, controllers) for controllers in wanted for parent in parents)
        if path := next((path for path, controllers in attempts if _create_group(path, controllers)), None):
            folders.append((version, path))
    return GroupFolders(folders)


def _create_group(path: Path, controllers: set[str]) -> bool:
    """Create a group; return whether processes can be moved there, and whether it has controllers."""
    try:
        path.mkdir(exist_ok=True)
        usable = os.access(path / "cgroup.procs", os.W_OK)
        if usable and controllers:
            usable = controllers <= set((path / "cgroup.controllers").read_text().split())
    except OSError:
        usable = False
    if not usable:
        with suppress(OSError):
            path.rmdir()
    return usable
