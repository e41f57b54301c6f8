"""Generated campaign of interference, shaped like the measured one, with a known law and with its defects.

The plan and the labels are those of the measurement. Every workload has a demand for processor time and a sensitivity
to the neighbors' memory traffic. Processor time is divided fairly, so the schedstat share is most of the degradation,
and the traffic of the neighbors is the remainder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.interference.measuring.labels import label_record
from perfcast.domains.interference.measuring.scenarios import OTHER_CORE, PLACEMENTS, SAME_CORE, Design, Run, plan_runs
from perfcast.domains.interference.sources.host_interference import LABELS, PLACES
from perfcast.testing.generated_machine import MACHINE
from perfcast.utils.io import atomic_path, write_json

NAME = "host_interference"
WORKLOADS = ("chase", "compress", "disk", "fft", "http", "json", "kv", "matrix", "sort", "sqlite", "text", "triad")
NOISE = 0.01
"""Relative noise of a throughput."""
_DEMANDS = dict(zip(WORKLOADS, (1, 1, 0.3, 1, 0.7, 1, 0.6, 1, 0.9, 0.5, 1, 1), strict=True))
_TRAFFIC = dict(zip(WORKLOADS, (0.4, 0.2, 0.1, 0.5, 0.1, 0.2, 0.2, 0.3, 0.6, 0.1, 0.2, 1.0), strict=True))
_SENSITIVITY = 0.15
"""Throughput that a workload of full traffic loses to a neighbor of full traffic."""
_OPERATIONS = 200.0


def write(folder: Path, *, rows: int, seed: int, fillers: int = 6, seconds: int = 12) -> None:
    """Write host_interference.parquet and .json with about `rows` rows.

    Args:
        fillers: Metrics without any relation to the labels, besides those that matter.
        seconds: Seconds of a static run together.

    Some references differ too much, some samples are late, and one row has no throughput.
    """
    design = Design(WORKLOADS, tuple(PLACEMENTS), seed, seconds)
    random = np.random.default_rng(seed)
    parts: list[pd.DataFrame] = []
    started = 0.0
    for run in plan_runs(design):
        parts.append(label_record(_record(run, random, fillers, started)))
        started += run.seconds + 5
        if sum(map(len, parts)) >= rows:
            break
    frame = pd.concat(parts, ignore_index=True)
    metrics = [str(name) for name in frame if name not in {*PLACES, *LABELS}]
    degradation = {name: frame[name].astype(float).round(4) for name in ("degradation", "degradation_p99")}
    frame = frame.assign(**degradation).astype(dict.fromkeys([*metrics, *degradation], "float32"))
    together = frame.index[frame["phase"] == "together"][0]
    for name, value in (("throughput", 0.0), ("degradation", 1.0), ("rejected", "")):
        frame.loc[together, name] = value
    folder = Path(folder)
    with atomic_path(folder / f"{NAME}.parquet") as path:
        frame.to_parquet(path, index=False, compression="zstd")
    write_json(folder / f"{NAME}.json", {**MACHINE, "cores": 2, "quality": {"metrics": len(metrics)}})


def _share_cores(demands: np.ndarray, cores: float) -> np.ndarray:
    """Divide cores among demands: nobody gets more than the demand, and the remainder is divided evenly."""
    shares, left = np.zeros(len(demands)), cores
    while left > 1e-9 and (open_ := shares < demands - 1e-12).any():
        step = np.minimum(demands - shares, left / open_.sum()) * open_
        shares, left = shares + step, left - step.sum()
    return shares


def _record(run: Run, random: np.random.Generator, fillers: int, started: float) -> dict[str, Any]:
    """Return a record of a run as the measurement writes it."""
    reports: list[list[dict[str, Any]]] = [[] for _ in run.workloads]
    samples: list[tuple[int, int, float, dict[str, float]]] = []
    drift = 0.2 if random.random() < 0.08 else 0.0  # references before and after then differ
    bases = [_OPERATIONS * random.uniform(0.8, 1.2) for _ in run.workloads]
    warm_up = {(entry.start, entry.tenant) for entry in run.activities}
    for second in range(run.seconds):
        active = run.active_at(second)
        levels = np.array([run.intensities[tenant] for tenant in active])
        demands, traffic = (levels * [of[run.workloads[tenant]] for tenant in active] for of in (_DEMANDS, _TRAFFIC))
        cores = 1.0 if run.placement == SAME_CORE else min(2.0, run.quota or 2.0, float(len(active)))
        got = np.minimum(demands, 1.0) if run.placement == OTHER_CORE else _share_cores(demands, cores)
        share = got / demands
        flows = traffic * share
        for place, tenant in enumerate(active):
            loss = 1 - _SENSITIVITY * _TRAFFIC[run.workloads[tenant]] * (flows.sum() - flows[place])
            level = levels[place] * share[place] * loss * (1 + drift * second / run.seconds)
            rate = bases[tenant] * level * (1 + NOISE * random.normal())
            tail = 0.002 / (share[place] ** 1.5 * loss) * (1 + 2 * NOISE * abs(random.normal()))
            operations = {"operations": max(rate, 0.0), "ended": int(rate * 0.3), "latency_p99": tail}
            reports[tenant].append({"second": second, **operations})
            late = 0.5 if random.random() < 0.004 else 0.001
            metrics = _metrics(run.quota, place, demands, got, flows, random=random, fillers=fillers)
            if (second, tenant) not in warm_up:
                samples.append((second, tenant, late, metrics))
    *places, rows = zip(*samples, strict=True)
    names = sorted({name for row in rows for name in row})
    return {
        **{"started": started, "reports": reports, "run": run.to_json()},
        "places": dict(zip(("second", "tenant", "late"), places, strict=True)),
        "metrics": {name: [row.get(name) for row in rows] for name in names},
    }


def _metrics(
    quota: float | None,
    place: int,
    demands: np.ndarray,
    got: np.ndarray,
    flows: np.ndarray,
    *,
    random: np.random.Generator,
    fillers: int,
) -> dict[str, float]:
    """Return the metrics of one tenant in a second. Shapes: all arrays (active tenants,)."""

    def noisy(value: float) -> float:
        return float(value * (1 + 0.01 * random.normal()))

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
        "stat.ctxt": noisy(500 + 2000 * wait.sum()),
    }
    if quota:
        metrics |= {"host.cpu.periods": 10.0, "host.cpu.throttled_periods": float(round(10 * min(1.0, wait.sum())))}
    metrics |= {f"vmstat.filler_{number}": float(random.gamma(2, 100)) for number in range(fillers)}
    if random.random() < 0.02:
        metrics.pop("stat.ctxt")
    return metrics
