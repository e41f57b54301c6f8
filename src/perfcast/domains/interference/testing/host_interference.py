"""Generated seconds of interference, shaped like the measured ones, with a known law and with their defects.

Every workload has a demand for processor time and a sensitivity to the neighbors' memory traffic. Processor time is
divided fairly, so the schedstat share is most of the degradation, and the traffic of the neighbors is the remainder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.interference.sources.host_interference import LABELS, PLACES
from perfcast.testing.generated_machine import MACHINE
from perfcast.utils.io import atomic_path, write_json

NAME = "host_interference"
WORKLOADS = (
    "chase",
    "compress",
    "disk",
    "fft",
    "http",
    "json",
    "kv",
    "matrix",
    "sort",
    "sqlite",
    "text",
    "triad",
)
NOISE = 0.01
"""Relative noise of a throughput."""
_DEMANDS = dict(
    zip(
        WORKLOADS,
        (1, 1, 0.3, 1, 0.7, 1, 0.6, 1, 0.9, 0.5, 1, 1),
        strict=True,
    )
)
"""Cores that a workload wants at full intensity."""
_TRAFFIC = dict(
    zip(
        WORKLOADS,
        (
            0.4,
            0.2,
            0.1,
            0.5,
            0.1,
            0.2,
            0.2,
            0.3,
            0.6,
            0.1,
            0.2,
            1.0,
        ),
        strict=True,
    )
)
"""Memory traffic of a workload at full intensity, as a share of the largest one."""
_SENSITIVITY = 0.15
"""Throughput that a workload of full traffic loses to a neighbor of full traffic."""
_OPERATIONS = 200.0
"""Operations per second of a workload alone at full intensity, about."""
_TAIL = 0.002
"""Tail latency of a workload alone, in seconds."""
_KINDS = (
    ("alone", "same_core"),
    ("pair", "quota"),
    ("pair", "same_core"),
    ("triple", "shared_cores"),
    ("dynamic", "shared_cores"),
    ("dynamic", "same_core"),
    ("pair", "memory"),
    ("pair", "other_core"),
    ("triple", "quota"),
)
"""Scenario and placement of each run, by turns."""
_TENANTS = {
    "alone": 1,
    "pair": 2,
    "triple": 3,
    "dynamic": 3,
}
_LEVELS = (
    (0.4, 1.0),
    (1.0, 1.0),
    (1.0, 0.4),
    (0.4, 0.4),
    (1.0, 1.0),
)
"""Intensity of the first tenant and of its neighbors, by turns."""
_QUOTAS = (0.7, 1.0, 1.4)
_ALONE_SECONDS = 4
"""Seconds that a tenant runs alone before the others, and after them."""
_CHANGE_SECONDS = 5
"""Seconds after which a neighbor of a dynamic run starts or stops."""


@dataclass(frozen=True)
class _Run:
    """One run: its tenants, what they share, and which of them are active in each second."""

    number: int
    scenario: str
    placement: str
    workloads: tuple[str, ...]
    intensities: tuple[float, ...]
    quota: float | None
    active: tuple[tuple[int, ...], ...]
    together: tuple[int, int]
    operations: tuple[float, ...]
    spread: float


def write(
    folder: Path,
    *,
    rows: int,
    seed: int,
    fillers: int = 6,
    seconds: int = 12,
) -> None:
    """Write host_interference.parquet and .json with about `rows` rows.

    Args:
        fillers: Metrics without any relation to the labels, besides those that matter.
        seconds: Seconds of a run together.

    Some references differ too much, some samples are late, and one row has no throughput.
    """
    random = np.random.default_rng(seed)
    records: list[dict[str, Any]] = []
    for run in _draw_runs(random, seconds):
        records += _describe_run(run, random, fillers)
        if len(records) >= rows:
            break
    frame = pd.DataFrame(records)
    metrics = sorted(set(frame.columns) - {*PLACES, *LABELS})
    frame = frame[[*PLACES, *LABELS, *metrics]]
    frame = frame.astype(dict.fromkeys(metrics, "float32"))
    idle = frame.index[frame["phase"] == "together"][0]
    frame.loc[idle, ["throughput", "degradation"]] = [0.0, 1.0]
    frame.loc[idle, "rejected"] = ""
    folder = Path(folder)
    with atomic_path(folder / f"{NAME}.parquet") as path:
        frame.to_parquet(path, index=False, compression="zstd")
    quality = {"metrics": len(metrics)}
    write_json(folder / f"{NAME}.json", {**MACHINE, "cores": 2, "quality": quality})


def _draw_runs(random: np.random.Generator, seconds: int) -> Iterator[_Run]:
    """Yield runs without end. Workloads come from a shuffled deck, so that all occur soon."""
    deck: list[str] = []
    for number in count():
        scenario, placement = _KINDS[number % len(_KINDS)]
        tenants = _TENANTS[scenario]
        if len(deck) < tenants:
            deck = random.permutation(WORKLOADS).tolist()
        first, others = _LEVELS[number % len(_LEVELS)]
        yield _Run(
            number=number,
            scenario=scenario,
            placement=placement,
            workloads=tuple(deck.pop() for _ in range(tenants)),
            intensities=(first, *[others] * (tenants - 1)),
            quota=float(random.choice(_QUOTAS)) if placement == "quota" else None,
            active=_lay_out(scenario, tenants, seconds, random),
            together=(tenants * _ALONE_SECONDS, tenants * _ALONE_SECONDS + seconds),
            operations=tuple(_OPERATIONS * random.uniform(0.8, 1.2, tenants)),
            spread=0.2 if random.random() < 0.08 else NOISE,
        )


def _lay_out(
    scenario: str,
    tenants: int,
    seconds: int,
    random: np.random.Generator,
) -> tuple[tuple[int, ...], ...]:
    """Return the active tenants of each second: each one alone, all together, then each one alone again."""
    alone = [(tenant,) for tenant in range(tenants) for _ in range(_ALONE_SECONDS)]
    is_active = np.ones((seconds, tenants), dtype=bool)
    if scenario == "dynamic":
        changes = random.random((seconds // _CHANGE_SECONDS + 1, tenants)) < 0.5
        is_active = np.repeat(changes, _CHANGE_SECONDS, axis=0)[:seconds]
        is_active[:, 0] = True
    together = [tuple(np.flatnonzero(active).tolist()) for active in is_active]
    return (*alone, *together, *alone[::-1])


def _describe_run(run: _Run, random: np.random.Generator, fillers: int) -> Iterator[dict[str, Any]]:
    """Yield the places, labels and metrics of every second and active tenant."""
    for second, active in enumerate(run.active):
        levels = np.array([run.intensities[tenant] for tenant in active])
        demands = levels * [_DEMANDS[run.workloads[tenant]] for tenant in active]
        got = _divide(run, demands)
        share = got / demands
        flows = share * levels * [_TRAFFIC[run.workloads[tenant]] for tenant in active]
        for place, tenant in enumerate(active):
            neighbors = flows.sum() - flows[place]
            unharmed = 1 - _SENSITIVITY * _TRAFFIC[run.workloads[tenant]] * neighbors
            late = 0.5 if random.random() < 0.004 else 0.001
            row = {
                **_places(run, second, active, tenant),
                **_labels(
                    alone=run.operations[tenant] * levels[place],
                    share=share[place],
                    unharmed=unharmed,
                    spread=run.spread,
                    late=late,
                    random=random,
                ),
                **_metrics(run, place, demands, got, flows, random=random),
            }
            for number in range(fillers):
                row[f"vmstat.filler_{number}"] = float(random.gamma(2, 100))
            yield row


def _places(
    run: _Run,
    second: int,
    active: tuple[int, ...],
    tenant: int,
) -> dict[str, Any]:
    """Return where a row comes from."""
    others = [other for other in active if other != tenant]
    first, last = run.together
    return {
        "run": run.number,
        "attempt": 1,
        "scenario": run.scenario,
        "placement": run.placement,
        "quota": run.quota,
        "memory_slack_mib": 160.0 if run.placement == "memory" else None,
        "tenant": tenant,
        "victim": run.workloads[tenant],
        "intensity": run.intensities[tenant],
        "aggressors": "+".join(sorted(run.workloads[other] for other in others)),
        "aggressor_count": len(others),
        "aggressor_intensity": np.mean([run.intensities[other] for other in others]) if others else np.nan,
        "phase": "together" if first <= second < last else "alone",
        "second": second,
        "clock": 100.0 * run.number + second,
    }


def _labels(
    *,
    alone: float,
    share: float,
    unharmed: float,
    spread: float,
    late: float,
    random: np.random.Generator,
) -> dict[str, Any]:
    """Return throughput and tail latency with those alone, and the reasons why they must not be used.

    Args:
        share: Share of the processor time that the tenant wanted.
        unharmed: Share of its throughput that the neighbors' traffic leaves.
    """
    throughput = alone * share * unharmed * (1 + NOISE * random.normal())
    tail = _TAIL / (share**1.5 * unharmed) * (1 + 2 * NOISE * abs(random.normal()))
    reasons = {"reference": spread > 0.05, "late": late > 0.1}
    return {
        "throughput": throughput,
        "throughput_alone": alone,
        "degradation": round(1 - throughput / alone, 4),
        "latency_p99": tail,
        "latency_p99_alone": _TAIL,
        "degradation_p99": round(1 - _TAIL / tail, 4),
        "reference_spread": spread,
        "reference_spread_p99": spread,
        "late": late,
        "rejected": "+".join(reason for reason, holds in reasons.items() if holds),
    }


def _divide(run: _Run, demands: np.ndarray) -> np.ndarray:
    """Divide the run's cores among demands: nobody gets more than the demand, and the rest is divided evenly."""
    if run.placement == "other_core":
        return np.asarray(np.minimum(demands, 1.0))
    left = 1.0 if run.placement == "same_core" else min(2.0, run.quota or 2.0, float(len(demands)))
    got = np.zeros(len(demands))
    while left > 1e-9 and (wants_more := got < demands - 1e-12).any():
        step = np.minimum(demands - got, left / wants_more.sum()) * wants_more
        got += step
        left -= step.sum()
    return got


def _metrics(
    run: _Run,
    place: int,
    demands: np.ndarray,
    got: np.ndarray,
    flows: np.ndarray,
    *,
    random: np.random.Generator,
) -> dict[str, float]:
    """Return the metrics of one tenant in a second. Shapes: all arrays (active tenants,)."""

    def noisy(value: float) -> float:
        return float(value * (1 + NOISE * random.normal()))

    wait = demands - got
    lost = 1 - got[place] / demands[place]
    metrics = {
        "group.processes.run_seconds": noisy(got[place]),
        "group.processes.wait_seconds": noisy(wait[place]),
        "group.processes.run_share": float(got[place] / demands[place]),
        "group.cpu.usage_seconds": noisy(got[place]),
        "others.cpu.usage_seconds": noisy(got.sum() - got[place]),
        "group.memory.pgfault": noisy(1000 * flows[place]),
        "others.memory.pgfault": noisy(1000 * (flows.sum() - flows[place])),
        "group.pressure.cpu.some_seconds": noisy(0.8 * lost),
        "pressure.cpu.some_seconds": noisy(min(1.0, wait.sum())),
        "pressure.io.some_seconds": abs(noisy(0.02)),
        "stat.cpu.idle": noisy(max(0.0, 2 - got.sum())),
    }
    if run.quota:
        throttled = round(10 * min(1.0, wait.sum()))
        metrics |= {
            "host.cpu.periods": 10.0,
            "host.cpu.throttled_periods": float(throttled),
        }
    if random.random() > 0.02:
        # this metric is missing at times
        metrics["stat.ctxt"] = noisy(500 + 2000 * wait.sum())
    return metrics
