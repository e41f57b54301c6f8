"""Labels of a run: degradation of throughput and tail latency against the same tenant alone, second by second.

degradation = 1 - throughput / throughput alone, and 1 - p99 alone / p99 for the latency. The value alone is
interpolated in time between the references before and after (A-B-A design), so that a linear drift of the machine is
divided out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.interference.measuring.scenarios import ALONE, TOGETHER, Run
from perfcast.domains.interference.sources.host_interference import LABELS, PLACES

MAX_REFERENCE_SPREAD = 0.05
"""Relative difference of the references before and after, above which the labels are rejected."""
MAX_STEAL = 0.05
"""Share of a tenant's processors that the hypervisor may take in a second."""
MAX_LATE = 0.1
"""Seconds by which a sample may be taken too late."""
MIN_LATENCIES = 20
"""Operations that a second must end, so that their 99 % quantile is a label."""


@dataclass(frozen=True)
class Reference:
    """Values alone before and after. Units: `centers` in seconds of the run; `values` in those of the quantity."""

    centers: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def spread(self) -> float:
        """Return the difference over the mean; NaN unless there are two."""
        if len(self.values) < 2 or not np.mean(self.values) > 0:
            return math.nan
        return float((max(self.values) - min(self.values)) / np.mean(self.values))

    def at(self, second: float) -> float:
        """Return the interpolated value at a time, that of the nearest reference outside of both."""
        return float(np.interp(second, self.centers, self.values)) if self.values else math.nan


def read_reference(values: Mapping[int, float], spans: Sequence[tuple[int, int]]) -> Reference:
    """Return the medians of finite values in each span of seconds; a span without any is left out."""
    centers, medians = [], []
    for start, end in spans:
        inside = [values[second] for second in range(start, end) if math.isfinite(values.get(second, math.nan))]
        if inside:
            centers.append((start + end - 1) / 2)
            medians.append(float(np.median(inside)))
    return Reference(tuple(centers), tuple(medians))


def label_record(record: Mapping[str, Any], *, begin: float = 0.0) -> pd.DataFrame:
    """Return one row per second and active tenant: places, labels, then metrics.

    Args:
        record: What `Record.to_json` returns.
        begin: Time of the first run of the campaign, in seconds of the system's clock.
    """
    run = Run.from_json(record["run"])
    reports = [{int(entry["second"]): entry for entry in tenant} for tenant in record["reports"]]
    rates = [{second: float(entry["operations"]) for second, entry in tenant.items()} for tenant in reports]
    tails = [{second: _tail(entry) for second, entry in tenant.items()} for tenant in reports]
    spans = [run.references(tenant) for tenant in range(len(run.workloads))]
    alone = [read_reference(values, span) for values, span in zip(rates, spans, strict=True)]
    alone_tails = [read_reference(values, span) for values, span in zip(tails, spans, strict=True)]
    steal = record["metrics"].get("allowed.steal")
    places, rows = record["places"], []
    for index, (second, tenant, late) in enumerate(
        zip(places["second"], places["tenant"], places["late"], strict=True)
    ):
        throughput, tail = rates[tenant].get(second, 0.0), tails[tenant].get(second, math.nan)
        reference, tail_reference = alone[tenant].at(second), alone_tails[tenant].at(second)
        spread = alone[tenant].spread
        others = [other for other in run.active_at(second) if other != tenant]
        reasons = {
            "reference": not spread <= MAX_REFERENCE_SPREAD,
            "late": late > MAX_LATE,
            "steal": steal and (steal[index] or 0) > MAX_STEAL,
        }
        rows.append(
            (
                *(run.number, 1, run.scenario, run.placement, run.quota, run.memory_slack_mib),
                *(tenant, run.workloads[tenant], run.intensities[tenant]),
                *("+".join(sorted(run.workloads[other] for other in others)), len(others)),
                float(np.mean([run.intensities[other] for other in others])) if others else math.nan,
                TOGETHER if run.together[0] <= second < run.together[1] else ALONE,
                *(second, round(record["started"] - begin + second, 1)),
                *(throughput, reference, 1 - throughput / reference if reference > 0 else math.nan),
                *(tail, tail_reference, 1 - tail_reference / tail if tail > 0 else math.nan),
                *(spread, alone_tails[tenant].spread, late),
                "+".join(reason for reason, holds in reasons.items() if holds),
            )
        )
    frame = pd.DataFrame(rows, columns=[*PLACES, *LABELS])
    metrics = pd.DataFrame(record["metrics"], dtype=float)
    return pd.concat([frame, metrics.reindex(frame.index)], axis=1)


def _tail(entry: Mapping[str, Any]) -> float:
    """Return the 99 % quantile of the latency, NaN with too few operations."""
    if entry["latency_p99"] is None or entry["ended"] < MIN_LATENCIES:
        return math.nan
    return float(entry["latency_p99"])
