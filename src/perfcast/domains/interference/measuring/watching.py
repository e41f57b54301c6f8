"""Watch: the groups of processes of a machine, and a sample and a prediction of all of them every second."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfcast.domains.interference.measuring.degradation import HIGH, LOW, QUANTITIES, DegradationModel
from perfcast.domains.interference.measuring.groups import Hierarchy
from perfcast.domains.interference.measuring.metrics import Group, Sampler, compute_metrics, row_of_group
from perfcast.utils.errors import UserError

MAX_GROUPS = 12
"""Groups that are watched without a list: those that used most processor time."""
_USAGE_FILES = (("cpu.stat", "usage_usec", 1e-6), ("cpuacct.usage", "", 1e-9))
_PARENT = "parent of "
_USAGE = ("cpu.usage_seconds", "processes.run_seconds")
_BUSY = 0.01
"""Cores that a group must use: an idle one has no throughput that could degrade."""
MAX_COST = 0.02
"""Share of one core for samples and predictions: samples are taken every second, predictions as often as it permits."""


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
    chosen = [_open_group(trees, name) for name in wanted]
    chosen += [_open_process(text, root) for text in processes]
    if not wanted and not processes:
        used = {name: seconds for name, seconds in list_groups(trees).items() if name != "/"}
        names = sorted(used, key=lambda name: (-used[name], name))[:MAX_GROUPS]
        chosen = [_open_group(trees, name) for name in sorted(names)]
    if not chosen:
        fact = "this machine has none with processes"
        raise UserError("there must be control groups to watch", fact, "name processes with --processes")
    return chosen


def _open_group(trees: Sequence[Hierarchy], name: str) -> RunningGroup:
    path = name.strip("/")
    folders = [(tree, tree.mount / path) for tree in trees if (tree.mount / path / "cgroup.procs").is_file()]
    if not folders:
        remedy = "name it as below /sys/fs/cgroup, such as /system.slice/web.service"
        raise UserError("--groups must name control groups", f"there is no {name}", remedy)
    parent = Group(tuple(folder.parent for _, folder in folders), with_processes=False) if path else None
    group = Group(tuple(folder for _, folder in folders))
    limits = [quota for _, folder in folders for level in (folder, folder.parent) if (quota := _quota(level))]
    cpus = _allowed(group)
    return RunningGroup(f"/{path}", group, parent, cpus, min([float(len(cpus)), *limits]))


def _open_process(text: str, root: Path) -> RunningGroup:
    numbers = [int(text)] if text.isdigit() else _find_processes(text, root)
    roots = tuple(number for number in numbers if (root / "proc" / str(number)).is_dir())
    if not roots:
        raise UserError("--processes must name running processes", f"there is no {text}", "give names or numbers")
    group = Group(roots=roots)
    cpus = _allowed(group)
    return RunningGroup(text, group, None, cpus, float(len(cpus)))


def _find_processes(name: str, root: Path) -> list[int]:
    numbers = []
    for entry in (root / "proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name[:15]:
                numbers.append(int(entry.name))
    return sorted(numbers)


def _allowed(group: Group) -> tuple[int, ...]:
    """Return the processors that the first process may use; all of the machine where it cannot be read."""
    numbers: Iterable[int] = group.roots
    if group.folders:
        with suppress(OSError, ValueError):
            numbers = [int(text) for text in (group.folders[0] / "cgroup.procs").read_text().split()]
    for number in numbers:
        with suppress(OSError):
            return tuple(sorted(os.sched_getaffinity(number)))
    return tuple(range(os.cpu_count() or 1))


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


@dataclass(frozen=True)
class Observation:
    """One second. Units: `degradation` as shares by group and quantity; `usage` and `cost` in cores; `age` in seconds.

    `degradation` has the ends of intervals too, where they are known. `age` is the time since the prediction was made.
    """

    seconds: float
    age: float
    degradation: dict[str, dict[str, float]]
    usage: dict[str, float]
    cost: float

    def to_json(self) -> dict[str, Any]:
        """Return the second as JSON values."""
        groups = {
            name: {"cores": round(self.usage[name], 4), **{key: round(value, 4) for key, value in values.items()}}
            for name, values in self.degradation.items()
        }
        times = {"seconds": round(self.seconds, 3), "age": round(self.age, 3)}
        return {**times, "cost": round(self.cost, 5), "groups": groups}

    def to_lines(self) -> list[str]:
        """Return a table in text, the most degraded group first."""
        lines = [f"{'group':<40} {'cores':>6} {'throughput':>22} {'p99 latency':>22}"]
        for name, values in sorted(self.degradation.items(), key=lambda entry: -entry[1][QUANTITIES[0]]):
            slower = [_with_interval(values, key) for key in QUANTITIES]
            lines.append(f"{name[-40:]:<40} {self.usage[name]:>6.2f} {slower[0]:>22} {slower[1]:>22}")
        if len(lines) == 1:
            lines.append("no group uses processor time")
        if self.age >= 1:
            lines.append(f"predicted {self.age:.0f} s ago, so that this command takes {100 * MAX_COST:g} % of a core")
        return lines


def watch(
    groups: Sequence[RunningGroup],
    model: DegradationModel,
    sampler: Sampler,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    cpu_clock: Callable[[], float] = time.process_time,
) -> Iterator[Observation]:
    """Yield an observation every second, without end. The first one comes after one second.

    Args:
        cpu_clock: Processor time of this process, in seconds.
    """
    read: dict[str, Group] = {entry.name: entry.group for entry in groups}
    read |= {_PARENT + entry.name: entry.parent for entry in groups if entry.parent is not None}
    names = [entry.name for entry in groups]
    begin = due = clock()
    before = sampler.read(read)
    debt, predicted_at = 0.0, begin
    degradation: dict[str, dict[str, float]] | None = None
    while True:
        due = max(due + 1, clock())
        sleep(max(0.0, due - clock()))
        busy = cpu_clock()
        after = sampler.read(read)
        metrics = compute_metrics(before, after)
        debt = max(0.0, debt - MAX_COST * (after.time - before.time))
        before = after
        usage = {name: _cores(metrics.groups.get(name, {})) for name in names}
        others = {name: [other for other in names if other != name] for name in names}
        rows = {
            entry.name: row_of_group(metrics, entry.name, others[entry.name], entry.cpus, _PARENT + entry.name)
            for entry in groups
        }
        model.add_second(rows)
        is_first = degradation is None
        if degradation is None or debt < MAX_COST:
            neighbors = [sum(usage[other] > _BUSY for other in others[name]) for name in names]
            predicted = model.predict([entry.cores for entry in groups], neighbors)
            values = predicted.to_numpy(dtype=float).tolist()
            degradation = {
                str(name): {str(key): value for key, value in zip(predicted, row, strict=True) if math.isfinite(value)}
                for name, row in zip(predicted.index, values, strict=True)
            }
            predicted_at = after.time
        cost = cpu_clock() - busy
        debt += 0.0 if is_first else cost  # libraries warm up
        shown = {name: values for name, values in degradation.items() if usage[name] > _BUSY}
        yield Observation(after.time - begin, after.time - predicted_at, shown, usage, cost)


def _with_interval(values: dict[str, float], key: str) -> str:
    """Return a degradation in % with its interval, if that is known."""
    text = f"{100 * values[key]:+.0f} %"
    if key + LOW not in values:
        return text
    return f"{text} ({100 * values[key + LOW]:.0f} to {100 * values[key + HIGH]:.0f})"


def _cores(metrics: dict[str, float]) -> float:
    return next((metrics[name] for name in _USAGE if name in metrics), 0.0)
