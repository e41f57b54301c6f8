"""Groups of processes on a running machine: control groups that have processes, or processes by name or number."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfcast.domains.interference.measuring.groups import Hierarchy
from perfcast.domains.interference.measuring.metrics import Group
from perfcast.utils.errors import UserError

MAX_GROUPS = 12
"""Groups that are watched without a list: those that used most processor time."""
_USAGE_FILES = (("cpu.stat", "usage_usec", 1e-6), ("cpuacct.usage", "", 1e-9))


@dataclass(frozen=True)
class RunningGroup:
    """One group.

    Args:
        group: What the sampler reads.
        parent: Control group above, which carries shared limits; None at the top.
        cpus: Processors that the group may use.
        cores: Their number, or the quota of the group or of its parent.
    """

    name: str
    group: Group
    parent: Group | None
    cpus: tuple[int, ...]
    cores: float


def list_groups(trees: Sequence[Hierarchy]) -> dict[str, float]:
    """Return the paths of all control groups with processes, and the processor time that each has used, in seconds."""
    used: dict[str, float] = {}
    for tree in trees:
        for path in [tree.mount, *(entry for entry in tree.mount.rglob("*") if entry.is_dir())]:
            with suppress(OSError):
                if (path / "cgroup.procs").read_text().strip():
                    name = "/" + path.relative_to(tree.mount).as_posix().lstrip(".")
                    used[name] = max(used.get(name, 0.0), _usage(path))
    return used


def choose_groups(
    trees: Sequence[Hierarchy], wanted: Sequence[str] = (), processes: Sequence[str] = (), root: Path = Path("/")
) -> list[RunningGroup]:
    """Return the named groups and processes, or the groups that used most processor time, the root left out.

    Raises: UserError where a group or process does not exist, or there is none to watch.
    """
    chosen = [_open_group(trees, name, root) for name in wanted]
    chosen += [_open_process(text, root) for text in processes]
    if not wanted and not processes:
        used = {name: seconds for name, seconds in list_groups(trees).items() if name != "/"}
        names = sorted(used, key=lambda name: (-used[name], name))[:MAX_GROUPS]
        chosen = [_open_group(trees, name, root) for name in sorted(names)]
    if not chosen:
        fact = "this machine has none with processes"
        raise UserError("there must be control groups to watch", fact, "name processes with --processes")
    return chosen


def _open_group(trees: Sequence[Hierarchy], name: str, root: Path) -> RunningGroup:
    path = name.strip("/")
    folders = [(tree, tree.mount / path) for tree in trees if (tree.mount / path / "cgroup.procs").is_file()]
    if not folders:
        remedy = "name it as below /sys/fs/cgroup, such as /system.slice/web.service"
        raise UserError("--groups must name control groups", f"there is no {name}", remedy)
    parent = Group(tuple(folder.parent for _, folder in folders), with_processes=False) if path else None
    group = Group(tuple(folder for _, folder in folders))
    limits = [quota for _, folder in folders for level in (folder, folder.parent) if (quota := _quota(level))]
    cpus = _allowed(group, root)
    return RunningGroup(f"/{path}", group, parent, cpus, min([float(len(cpus)), *limits]))


def _open_process(text: str, root: Path) -> RunningGroup:
    numbers = [int(text)] if text.isdigit() else _find_processes(text, root)
    roots = tuple(number for number in numbers if (root / "proc" / str(number)).is_dir())
    if not roots:
        raise UserError("--processes must name running processes", f"there is no {text}", "give names or numbers")
    group = Group(roots=roots)
    cpus = _allowed(group, root)
    return RunningGroup(text, group, None, cpus, float(len(cpus)))


def _find_processes(name: str, root: Path) -> list[int]:
    numbers = []
    for entry in (root / "proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name[:15]:
                numbers.append(int(entry.name))
    return sorted(numbers)


def _allowed(group: Group, root: Path) -> tuple[int, ...]:
    """Return the processors that the first process may use; all of the machine where it cannot be read."""
    numbers: Iterable[int] = group.roots
    if group.folders:
        with suppress(OSError, ValueError):
            numbers = [int(text) for text in (group.folders[0] / "cgroup.procs").read_text().split()]
    for number in numbers:
        with suppress(OSError, IndexError):
            status = (root / "proc" / str(number) / "status").read_text()
            return _parse_cpus(status.split("Cpus_allowed_list:", 1)[1].split()[0])
    return tuple(range(os.cpu_count() or 1))


def _parse_cpus(text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as 0-3,8."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


def _quota(folder: Path) -> float | None:
    """Return the cores of a quota, None without one."""
    with suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()[:2]
        return None if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError):
        allowed = int((folder / "cpu.cfs_quota_us").read_text())
        return allowed / int((folder / "cpu.cfs_period_us").read_text()) if allowed > 0 else None
    return None


def _usage(folder: Path) -> float:
    for file, key, unit in _USAGE_FILES:
        with suppress(OSError, ValueError, IndexError):
            text = (folder / file).read_text()
            number = text.split(key, 1)[1].split()[0] if key else text
            return float(number) * unit
    return 0.0


def active_neighbors(usage: Mapping[str, float], name: str, threshold: float = 0.01) -> int:
    """Return how many other groups use processor time. Units: `usage` in cores."""
    return sum(seconds > threshold for other, seconds in usage.items() if other != name)
