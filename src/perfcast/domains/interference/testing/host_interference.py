"""Generated seconds of interference, shaped like the measured ones, with a known law and with their defects.

Every workload has a demand for processor time, and a memory traffic by which it harms others and is harmed. Processor
time is divided in proportion to the demands, so the schedstat share is most of the degradation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perfcast.domains.interference.sources.host_interference import LABELS, MACHINE, PLACES, TABLE
from perfcast.testing import generated_machine
from perfcast.utils.io import atomic_path, write_json


class Workload(NamedTuple):
    """Cores that a workload wants at full intensity, and its memory traffic over the largest one."""

    demand: float
    traffic: float


WORKLOADS = {
    "chase": Workload(1.0, 0.4),
    "compress": Workload(1.0, 0.2),
    "disk": Workload(0.3, 0.1),
    "fft": Workload(1.0, 0.5),
    "http": Workload(0.7, 0.1),
    "json": Workload(1.0, 0.2),
    "kv": Workload(0.6, 0.2),
    "matrix": Workload(1.0, 0.3),
    "sort": Workload(0.9, 0.6),
    "sqlite": Workload(0.5, 0.1),
    "text": Workload(1.0, 0.2),
    "triad": Workload(1.0, 1.0),
}
NOISE = 0.01
"""Relative noise of a throughput."""
_SENSITIVITY = 0.15
"""Throughput that a workload of full traffic loses to a neighbor of full traffic."""
_TAIL = 0.002
"""Tail latency of a workload alone, in seconds."""
_KINDS = (
    ("alone", "same_core", 1),
    ("pair", "quota", 2),
    ("pair", "same_core", 2),
    ("triple", "shared_cores", 3),
    ("dynamic", "shared_cores", 3),
    ("dynamic", "same_core", 3),
    ("pair", "memory", 2),
    ("pair", "other_core", 2),
    ("triple", "quota", 3),
)
"""Scenario, placement and tenants of each run, by turns."""
_INTENSITIES = ((0.4, 1.0), (1.0, 1.0), (1.0, 0.4), (0.4, 0.4))
"""Intensity of the first tenant and of its neighbors, by turns."""
_CORES = {"same_core": 1.0, "quota": 1.4}
"""Cores of a placement that has fewer than the machine's two."""
_ALONE_SECONDS = 4
"""Seconds that a tenant runs alone before the others, and after them."""
_TOGETHER_SECONDS = 12


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the table and the description of its machine, with about `rows` rows.

    Some references differ too much, some samples are late, some metrics are missing, and one row has no throughput.
    """
    random = np.random.default_rng(seed)
    # by turns, so that all workloads occur soon
    names = cycle(random.permutation(list(WORKLOADS)).tolist())
    records: list[dict[str, Any]] = []
    for number in count():
        scenario, placement, tenants = _KINDS[number % len(_KINDS)]
        workloads = [next(names) for _ in range(tenants)]
        records += _draw_run(number, scenario, placement, workloads, random)
        if len(records) >= rows:
            break
    frame = pd.DataFrame(records)
    metrics = sorted(set(frame.columns) - {*PLACES, *LABELS})
    frame = frame[[*PLACES, *LABELS, *metrics]].astype(dict.fromkeys(metrics, "float32"))
    idle = frame.index[frame["phase"] == "together"][0]
    frame.loc[idle, ["throughput", "degradation"]] = [0.0, 1.0]
    frame.loc[idle, "rejected"] = ""
    with atomic_path(folder / TABLE) as path:
        frame.to_parquet(path, index=False, compression="zstd")
    write_json(folder / MACHINE, {**generated_machine.MACHINE, "cores": 2, "quality": {"metrics": len(metrics)}})


def _draw_run(
    number: int,
    scenario: str,
    placement: str,
    workloads: Sequence[str],
    random: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield the places, labels and metrics of every second and active tenant."""
    tenants = len(workloads)
    first, others = _INTENSITIES[number % len(_INTENSITIES)]
    intensities = [first, *[others] * (tenants - 1)]
    operations = 200.0 * random.uniform(0.8, 1.2, tenants)
    spread = 0.2 if random.random() < 0.08 else NOISE
    for second, (phase, active) in enumerate(_lay_out(scenario, tenants, random)):
        levels = np.array([intensities[tenant] for tenant in active])
        demands = levels * [WORKLOADS[workloads[tenant]].demand for tenant in active]
        available = np.ones(len(active)) if placement == "other_core" else demands / demands.sum()
        got = np.minimum(demands, _CORES.get(placement, 2.0) * available)
        flows = got / demands * levels * [WORKLOADS[workloads[tenant]].traffic for tenant in active]
        for place, tenant in enumerate(active):
            beside = [other for other in active if other != tenant]
            late = 0.5 if random.random() < 0.004 else 0.001
            reasons = [name for name, holds in (("reference", spread > 0.05), ("late", late > 0.1)) if holds]
            harm = _SENSITIVITY * WORKLOADS[workloads[tenant]].traffic * (flows.sum() - flows[place])
            yield {
                "run": number,
                "attempt": 1,
                "scenario": scenario,
                "placement": placement,
                "quota": _CORES["quota"] if placement == "quota" else None,
                "memory_slack_mib": 160.0 if placement == "memory" else None,
                "tenant": tenant,
                "victim": workloads[tenant],
                "intensity": intensities[tenant],
                "aggressors": "+".join(sorted(workloads[other] for other in beside)),
                "aggressor_count": len(beside),
                "aggressor_intensity": np.mean([intensities[other] for other in beside]) if beside else np.nan,
                "phase": phase,
                "second": second,
                "clock": 100.0 * number + second,
                "reference_spread": spread,
                "reference_spread_p99": spread,
                "late": late,
                "rejected": "+".join(reasons),
                **_labels(operations[tenant] * levels[place], got[place] / demands[place], 1 - harm, random),
                **_metrics(placement, place, demands, got, flows, random=random),
            }


def _lay_out(
    scenario: str,
    tenants: int,
    random: np.random.Generator,
) -> Iterator[tuple[str, list[int]]]:
    """Yield the phase and the active tenants of each second: each one alone, all together, and each alone again."""
    alone = [("alone", [tenant]) for tenant in range(tenants) for _ in range(_ALONE_SECONDS)]
    yield from alone
    for _ in range(_TOGETHER_SECONDS):
        is_there = random.random(tenants) < (0.5 if scenario == "dynamic" else 1.0)
        yield "together", [tenant for tenant in range(tenants) if tenant == 0 or is_there[tenant]]
    yield from alone[::-1]


def _labels(
    alone: float,
    share: float,
    unharmed: float,
    random: np.random.Generator,
) -> dict[str, float]:
    """Return throughput and tail latency with those alone.

    Args:
        share: Share of the processor time that the tenant wanted.
        unharmed: Share of its throughput that the neighbors' traffic leaves.
    """
    throughput = alone * share * unharmed * (1 + NOISE * random.normal())
    tail = _TAIL / (share**1.5 * unharmed) * (1 + 2 * NOISE * abs(random.normal()))
    return {
        "throughput": throughput,
        "throughput_alone": alone,
        "degradation": round(1 - throughput / alone, 4),
        "latency_p99": tail,
        "latency_p99_alone": _TAIL,
        "degradation_p99": round(1 - _TAIL / tail, 4),
    }


def _metrics(
    placement: str,
    place: int,
    demands: np.ndarray,
    got: np.ndarray,
    flows: np.ndarray,
    *,
    random: np.random.Generator,
) -> dict[str, float]:
    """Return the metrics of one tenant in a second. Shapes: all arrays (active tenants,)."""
    wait = demands - got
    waiting = float(wait.sum())
    metrics = {
        "group.processes.run_seconds": got[place],
        "group.processes.wait_seconds": wait[place],
        "group.processes.run_share": got[place] / demands[place],
        "group.cpu.usage_seconds": got[place],
        "others.cpu.usage_seconds": got.sum() - got[place],
        "group.memory.pgfault": 1000 * flows[place],
        "others.memory.pgfault": 1000 * (flows.sum() - flows[place]),
        "group.pressure.cpu.some_seconds": 0.8 * (1 - got[place] / demands[place]),
        "pressure.cpu.some_seconds": min(1.0, waiting),
        "pressure.io.some_seconds": 0.02,
        "stat.cpu.idle": max(0.0, 2 - got.sum()),
        "vmstat.unrelated": 100 * random.gamma(2),
    }
    if random.random() > 0.02:
        # this metric is missing at times
        metrics["stat.ctxt"] = 500 + 2000 * waiting
    metrics = {name: float(value * (1 + NOISE * random.normal())) for name, value in metrics.items()}
    if placement == "quota":
        metrics["host.cpu.periods"] = 10.0
        metrics["host.cpu.throttled_periods"] = round(10 * min(1.0, waiting))
    return metrics
