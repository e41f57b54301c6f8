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

MAX_REFERENCE_SPREAD = 0.05
"""Relative difference of the references before and after, above which the labels are rejected."""
MAX_STEAL = 0.05
"""Share of a tenant's processors that the hypervisor may take in a second."""
MAX_LATE = 0.1
"""Seconds by which a sample may be taken too late."""
MIN_LATENCIES = 20
"""Operations that a second must end, so that their 99 % quantile is a label."""

PLACES = (
    *("run", "attempt", "scenario", "placement", "quota", "memory_slack_mib"),
    *(
        "tenant",
        "victim",
        "intensity",
        "aggressors",
        "aggressor_count",
        "aggressor_intensity",
        "phase",
        "second",
        "clock",
    ),
)
"""Columns that tell where a row comes from."""
LABELS = (
    *("throughput", "throughput_alone", "degradation", "latency_p99", "latency_p99_alone", "degradation_p99"),
    *("reference_spread", "reference_spread_p99", "late", "rejected"),
)
"""Columns of labels, their parts and their quality."""


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


def label_record(
    record: Mapping[str, Any], *, begin: float = 0.0, max_spread: float = MAX_REFERENCE_SPREAD
) -> pd.DataFrame:
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
    rows = []
    places = record["places"]
    for index, (second, tenant, late) in enumerate(
        zip(places["second"], places["tenant"], places["late"], strict=True)
    ):
        throughput, tail = rates[tenant].get(second, 0.0), tails[tenant].get(second, math.nan)
        reference, tail_reference = alone[tenant].at(second), alone_tails[tenant].at(second)
        spread = alone[tenant].spread
        others = [other for other in run.active_at(second) if other != tenant]
        reasons = [
            *(["reference"] if not spread <= max_spread else []),
            *(["late"] if late > MAX_LATE else []),
            *(["steal"] if steal and (steal[index] or 0) > MAX_STEAL else []),
        ]
        rows.append(
            {
                "run": run.number,
                "attempt": record["attempt"],
                "scenario": run.scenario,
                "placement": run.placement,
                "quota": run.quota,
                "memory_slack_mib": run.memory_slack_mib,
                "tenant": tenant,
                "victim": run.workloads[tenant],
                "intensity": run.intensities[tenant],
                "aggressors": "+".join(sorted(run.workloads[other] for other in others)),
                "aggressor_count": len(others),
                "aggressor_intensity": float(np.mean([run.intensities[o] for o in others])) if others else math.nan,
                "phase": TOGETHER if run.together[0] <= second < run.together[1] else ALONE,
                "second": second,
                "clock": round(record["started"] - begin + second, 1),
                "throughput": throughput,
                "throughput_alone": reference,
                "degradation": 1 - throughput / reference if reference > 0 else math.nan,
                "latency_p99": tail,
                "latency_p99_alone": tail_reference,
                "degradation_p99": 1 - tail_reference / tail if tail > 0 else math.nan,
                "reference_spread": spread,
                "reference_spread_p99": alone_tails[tenant].spread,
                "late": late,
                "rejected": "+".join(reasons),
            }
        )
    frame = pd.DataFrame(rows, columns=[*PLACES, *LABELS])
    metrics = pd.DataFrame(record["metrics"], dtype=float)
    return pd.concat([frame, metrics.reindex(frame.index)], axis=1)


def _tail(entry: Mapping[str, Any]) -> float:
    """Return the 99 % quantile of the latency, NaN with too few operations."""
    if entry["latency_p99"] is None or entry["ended"] < MIN_LATENCIES:
        return math.nan
    return float(entry["latency_p99"])
