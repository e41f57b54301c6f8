"""Watch: a sample and a prediction of all groups every second."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perfcast.domains.interference.measuring.degradation import HIGH, LOW, QUANTITIES, DegradationModel
from perfcast.domains.interference.measuring.metrics import Group, Sampler, compute_metrics, row_of_group
from perfcast.domains.interference.measuring.running_groups import RunningGroup, active_neighbors

_PARENT = "parent of "
_USAGE = ("cpu.usage_seconds", "processes.run_seconds")
_BUSY = 0.01
"""Cores that a group must use: an idle one has no throughput that could degrade."""
MAX_COST = 0.02
"""Share of one core for samples and predictions: samples are taken every second, predictions as often as it permits."""


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
            neighbors = [active_neighbors(usage, name) for name in names]
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
