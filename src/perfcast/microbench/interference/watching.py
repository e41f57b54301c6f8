"""Watch: a sample and a prediction of all groups every second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perfcast.microbench.interference.degradation import QUANTITIES, DegradationModel
from perfcast.microbench.interference.metrics import Group, Sampler, compute_metrics, row_of_group
from perfcast.microbench.interference.running_groups import RunningGroup, active_neighbors

_PARENT = "parent of "
_USAGE = ("cpu.usage_seconds", "processes.run_seconds")
_BUSY = 0.01
"""Cores that a group must use: an idle one has no throughput that could degrade."""


@dataclass(frozen=True)
class Observation:
    """One second. Units: `degradation` as shares by group and quantity; `usage` and `cost` in cores."""

    seconds: float
    degradation: dict[str, dict[str, float]]
    usage: dict[str, float]
    cost: float

    def to_json(self) -> dict[str, Any]:
        """Return the second as JSON values."""
        groups = {
            name: {"cores": round(self.usage[name], 4), **{key: round(value, 4) for key, value in values.items()}}
            for name, values in self.degradation.items()
        }
        return {"seconds": round(self.seconds, 3), "cost": round(self.cost, 5), "groups": groups}

    def to_lines(self) -> list[str]:
        """Return a table in text, the most degraded group first."""
        lines = [f"{'group':<40} {'cores':>6} {'throughput':>11} {'p99 latency':>12}"]
        for name, values in sorted(self.degradation.items(), key=lambda entry: -entry[1][QUANTITIES[0]]):
            slower = [f"{100 * values[key]:>+10.0f} %" for key in QUANTITIES]
            lines.append(f"{name[-40:]:<40} {self.usage[name]:>6.2f} {slower[0]:>11} {slower[1]:>12}")
        if len(lines) == 1:
            lines.append("no group uses processor time")
        return lines


def watch(
    groups: Sequence[RunningGroup],
    model: DegradationModel,
    sampler: Sampler,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Observation]:
    """Yield an observation every second, without end. The first one comes after one second."""
    read: dict[str, Group] = {entry.name: entry.group for entry in groups}
    read |= {_PARENT + entry.name: entry.parent for entry in groups if entry.parent is not None}
    names = [entry.name for entry in groups]
    begin = due = clock()
    before = sampler.read(read)
    while True:
        due = max(due + 1, clock())
        sleep(max(0.0, due - clock()))
        busy = time.process_time()
        after = sampler.read(read)
        metrics = compute_metrics(before, after)
        before = after
        usage = {name: _cores(metrics.groups.get(name, {})) for name in names}
        active = {name for name in names if usage[name] > _BUSY}
        rows = {
            entry.name: row_of_group(
                metrics, entry.name, [name for name in names if name != entry.name], entry.cpus, _PARENT + entry.name
            )
            for entry in groups
        }
        model.add_second(rows)
        predicted = model.predict([entry.cores for entry in groups], [active_neighbors(usage, name) for name in names])
        degradation = {
            str(name): {key: float(value) for key, value in row.items()}
            for name, row in zip(predicted.index, predicted.to_dict("records"), strict=True)
            if name in active
        }
        yield Observation(after.time - begin, degradation, usage, time.process_time() - busy)


def _cores(metrics: dict[str, float]) -> float:
    return next((metrics[name] for name in _USAGE if name in metrics), 0.0)
