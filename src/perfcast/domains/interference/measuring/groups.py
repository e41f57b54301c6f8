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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX = "perfcast-interference-"
CPU, MEMORY = "cpu", "memory"
_USED = frozenset({"cpu", "cpuacct", "memory", "blkio", "io"})
_PERIOD_US = 100_000


@dataclass(frozen=True)
class Hierarchy:
    """A mounted tree of groups. `current` is the folder of the calling process."""

    version: int
    controllers: frozenset[str]
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
            trees.append(Hierarchy(version, controllers, mount, mount / own_paths[name].lstrip("/")))
    return trees


class GroupFolders:
    """One group, as a folder in each tree."""

    def __init__(self, folders: Sequence[tuple[Hierarchy, Path]]) -> None:
        self._folders = list(folders)

    @property
    def folders(self) -> list[tuple[int, Path]]:
        """Version and folder in each tree."""
        return [(tree.version, folder) for tree, folder in self._folders]

    @property
    def limits(self) -> set[str]:
        """Resources that can be limited here: cpu, memory."""
        files = {CPU: ("cpu.max", "cpu.cfs_quota_us"), MEMORY: ("memory.max", "memory.limit_in_bytes")}
        return {name for name, known in files.items() if any(self._find(file) for file in known)}

    def create_child(self, name: str) -> GroupFolders:
        """Create a group below this one."""
        children = []
        for tree, folder in self._folders:
            if tree.version == 2:
                for controller in ("cpu", "memory", "io"):
                    with suppress(OSError):  # not permitted, or absent
                        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
            (folder / name).mkdir(exist_ok=True)
            children.append((tree, folder / name))
        return GroupFolders(children)

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
        path = self._find("memory.max") or self._find("memory.limit_in_bytes")
        if path:
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
        for _, folder in self._folders:
            (folder / "cgroup.procs").write_text(str(process))

    def processes(self) -> list[int]:
        """Return the ids of the processes in the group."""
        for _, folder in self._folders:
            with suppress(OSError, ValueError):
                return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
        return []

    def remove(self, patience: float = 3.0) -> bool:
        """Kill what still runs in the group and below it, and remove its folders; return whether all are gone.

        Units: `patience` in seconds; a killed process needs some time to end.
        """
        return remove_folders([folder for _, folder in self._folders], patience)

    def _find(self, name: str) -> Path | None:
        return next((folder / name for _, folder in self._folders if (folder / name).exists()), None)


def remove_folders(folders: Iterable[Path], patience: float = 3.0) -> bool:
    """Kill the processes of groups and remove their folders, children first; return whether all are gone."""
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
    for tree in trees:
        candidates = [tree.current, *tree.current.parents]
        candidates = [path for path in candidates if path == tree.mount or tree.mount in path.parents]
        created = [path for parent in candidates if (path := _try_group(tree, parent, name, strict=True))]
        if not created and tree.version == 2:
            created = [path for parent in candidates if (path := _try_group(tree, parent, name, strict=False))]
        for path in created[1:]:
            path.rmdir()
        folders += [(tree, path) for path in created[:1]]
    return GroupFolders(folders)


def _try_group(tree: Hierarchy, parent: Path, name: str, *, strict: bool) -> Path | None:
    """Create a group and return it if processes can be moved there, and if it has controllers where `strict`."""
    path = parent / name
    try:
        path.mkdir(exist_ok=True)
    except OSError:
        return None
    usable = os.access(path / "cgroup.procs", os.W_OK)
    if usable and strict and tree.version == 2:
        with suppress(OSError):
            usable = {"cpu", "memory"} <= set((path / "cgroup.controllers").read_text().split())
    if not usable:
        with suppress(OSError):
            path.rmdir()
        return None
    return path


def stale_groups(trees: Iterable[Hierarchy], root: Path = Path("/proc")) -> list[Path]:
    """Return base groups of campaigns that no longer run, next to or above the group of the caller."""
    stale = []
    for tree in trees:
        for parent in (tree.current, *tree.current.parents):
            if parent != tree.mount and tree.mount not in parent.parents:
                break
            for path in parent.glob(f"{PREFIX}*"):
                process = path.name.removeprefix(PREFIX)
                if process.isdigit() and not (root / process).exists():
                    stale.append(path)
    return stale
