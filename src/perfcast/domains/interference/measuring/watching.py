"""Watch: the control groups of a machine, sampled every second, and their degradation by a champion."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.interference.datasets.host_interference import LATENCY, THROUGHPUT, WINDOW_SECONDS
from perfcast.domains.interference.measuring.metrics import Group, Metrics, Sampler, compute_metrics, row_of_group
from perfcast.inference.champion import Champion, build_features
from perfcast.schema.sequences import from_matrix
from perfcast.schema.table import Column, Kind, Role
from perfcast.uncertainty.levels import outputs_of
from perfcast.utils.errors import UserError

MAX_GROUPS = 12
"""Groups that are watched without a list: those that used most processor time."""
QUANTITIES = (THROUGHPUT, LATENCY)
LOW, HIGH = "_low", "_high"
"""Endings of the names of an interval's ends."""
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
        folder: Folder of the control group.
        parent: Control group above, which carries shared limits; None at the top.
        cpus: Processors that the group may use.
        cores: Their number, or the quota of the group or of its parent.
    """

    name: str
    folder: Path
    parent: Path | None
    cpus: tuple[int, ...]
    cores: float


def choose_groups(tree: Path | None, wanted: Sequence[str] = ()) -> list[RunningGroup]:
    """Return the named control groups, or those that used most processor time, the root left out.

    Raises: UserError where a group does not exist, or there is none to watch.
    """
    used = {}
    if tree is not None and not wanted:
        for path in tree.rglob("*/"):
            with suppress(OSError, ValueError, KeyError):
                if (path / "cgroup.procs").read_text().strip():
                    lines = (path / "cpu.stat").read_text().splitlines()
                    used[path.relative_to(tree).as_posix()] = int(dict(line.split() for line in lines)["usage_usec"])
    names = wanted or sorted(sorted(used, key=lambda name: (-used[name], name))[:MAX_GROUPS])
    if tree is None or not names:
        fact = "this machine has none with processes"
        raise UserError("there must be control groups of version 2 to watch", fact, "start one with systemd-run")
    return [_open_group(tree, name.strip("/")) for name in names]


def _open_group(tree: Path, name: str) -> RunningGroup:
    folder, parent = tree / name, (tree / name).parent if name else None
    cpus = tuple(range(os.cpu_count() or 1))
    try:
        numbers = (folder / "cgroup.procs").read_text().split()
    except OSError:
        remedy = "name it as below /sys/fs/cgroup, such as /system.slice/web.service"
        raise UserError("--groups must name control groups", f"there is no /{name}", remedy) from None
    with suppress(OSError, IndexError):
        cpus = tuple(sorted(os.sched_getaffinity(int(numbers[0]))))
    limits = [float(len(cpus))]
    for path in (folder, parent or folder):
        with suppress(OSError, ValueError):  # no file, or no limit
            quota, period = (path / "cpu.max").read_text().split()
            limits.append(int(quota) / int(period))
    return RunningGroup(f"/{name}", folder, parent, cpus, min(limits))


def predict_degradation(
    champion: Champion, windows: Mapping[str, Sequence[Metrics]], cores: Sequence[float], neighbors: Sequence[float]
) -> pd.DataFrame:
    """Return the degradation of every group: 0 where it is as fast as alone, 1 where it stands still.

    Args:
        windows: The last seconds of every group, the newest last; seconds that are absent are missing values.

    Intervals are of 90 %, from the errors of backtests at the distance of a group from the training data.
    Shapes: cores and neighbors by group -> one column per quantity, and the ends of its interval, missing where the
    champion has no calibration.
    """
    count, repeats = len(windows), len(QUANTITIES)
    known = {
        **{"cores": np.tile(cores, repeats), "neighbors": np.tile(neighbors, repeats)},
        "quantity": np.repeat(QUANTITIES, count),
    }

    def values_of(column: Column) -> Any:
        if column.kind is Kind.SEQUENCE:
            matrix = np.full((count, WINDOW_SECONDS), np.nan, dtype="float32")
            for place, rows in enumerate(windows.values()):
                matrix[place, WINDOW_SECONDS - len(rows) :] = [row.get(column.name, np.nan) for row in rows]
            return from_matrix(np.tile(matrix, (repeats, 1)))
        if column.role is Role.KEY and column.kind is Kind.CATEGORICAL:
            return known.get(column.name, ["running"] * count * repeats)
        return known.get(column.name, [None] * count * repeats)

    columns = champion.reference_data.measured.columns
    frame = pd.DataFrame({column.name: values_of(column) for column in columns})
    rows = build_features(champion.dataset, frame, columns, champion.features).frame
    shares = champion.predictor.predict(rows).to_numpy(dtype=float)[:, 0]
    half = np.full(len(rows), np.nan)
    if champion.calibrated is not None:
        outputs = outputs_of(rows["quantity"], champion.predictor.targets_[0])
        half = champion.calibrated.intervals(rows, outputs)["below"].to_numpy(dtype=float)
    # neighbors make nothing faster than alone, which an interval in logarithms does not know
    most = np.minimum(shares * np.exp(half), np.maximum(shares, 1.0))
    ends = {"": 1 - shares, LOW: 1 - most, HIGH: 1 - shares * np.exp(-half)}
    columns_of = {
        quantity + end: values.reshape(repeats, count)[place]
        for place, quantity in enumerate(QUANTITIES)
        for end, values in ends.items()
    }
    return pd.DataFrame(columns_of, list(windows))


@dataclass(frozen=True)
class Observation:
    """One second. Units: `seconds` since the start, `age` of the prediction and `cost` of processor time in seconds.

    `groups` has a row per group that uses processor time: its cores, and its degradation as a share.
    """

    seconds: float
    age: float
    cost: float
    groups: pd.DataFrame

    def to_json(self) -> dict[str, Any]:
        """Return the second as JSON values."""
        times = {"seconds": round(self.seconds, 3), "age": round(self.age, 3), "cost": round(self.cost, 5)}
        return {**times, "groups": self.groups.round(4).to_dict("index")}

    def to_text(self) -> str:
        """Return a table, the most degraded group first."""
        table = self.groups.sort_values(THROUGHPUT, ascending=False).round(2).to_string()
        text = table if len(self.groups) else "no group uses processor time"
        if self.age < 1:
            return text
        return f"{text}\npredicted {self.age:.0f} s ago, so that this command takes {100 * MAX_COST:g} % of a core"


def watch(
    groups: Sequence[RunningGroup],
    champion: Champion,
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
    read = {entry.name: Group(entry.folder) for entry in groups}
    read |= {_PARENT + entry.name: Group(entry.parent, with_processes=False) for entry in groups if entry.parent}
    windows: dict[str, deque[Metrics]] = {entry.name: deque(maxlen=WINDOW_SECONDS) for entry in groups}
    begin = due = clock()
    before = sampler.read(read)
    debt, predicted_at = 0.0, begin
    predicted: pd.DataFrame | None = None
    while True:
        due = max(due + 1, clock())
        sleep(max(0.0, due - clock()))
        busy = cpu_clock()
        after = sampler.read(read)
        metrics = compute_metrics(before, after)
        debt = max(0.0, debt - MAX_COST * (after.time - before.time))
        before = after
        usage = {name: _cores(metrics.groups.get(name, {})) for name in windows}
        for entry in groups:
            others = [name for name in windows if name != entry.name]
            row = row_of_group(metrics, entry.name, others, entry.cpus, _PARENT + entry.name)
            windows[entry.name].append(row)
        is_first = predicted is None
        if predicted is None or debt < MAX_COST:
            active = sum(cores > _BUSY for cores in usage.values())
            neighbors = [float(active - (usage[name] > _BUSY)) for name in windows]
            predicted = predict_degradation(champion, windows, [entry.cores for entry in groups], neighbors)
            predicted_at = after.time
        cost = cpu_clock() - busy
        debt += 0.0 if is_first else cost  # libraries warm up
        table = pd.concat([pd.Series(usage, name="cores"), predicted], axis=1).dropna(axis=1, how="all")
        yield Observation(after.time - begin, after.time - predicted_at, cost, table[table["cores"] > _BUSY])


def _cores(metrics: Metrics) -> float:
    return next((metrics[name] for name in _USAGE if name in metrics), 0.0)
