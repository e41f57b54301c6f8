"""Declared columns of the interference dataset."""

from __future__ import annotations

from perfcast.schema.declare import key, measured, number
from perfcast.schema.table import Column, Kind, Role, Tag

THROUGHPUT, LATENCY = "throughput", "latency_p99"
SAME_CORE, PINNED, QUOTA = "same_core", "other_core", "quota"
"""Placements of the measurement that the columns depend on."""
GROUPS = {
    **dict.fromkeys(("allowed", "stat", "load", "scheduler", "clock"), "processors"),
    **dict.fromkeys(("vmstat", "meminfo"), "memory"),
    **{"pressure": "pressure", "disk": "disks", "net": "network", "perf": "counters"},
    **dict.fromkeys(("interrupt", "softirq"), "interrupts"),
    **{"group": "victim", "others": "neighbors", "host": "shared_limits"},
}
"""First part of a metric's name -> group of its columns."""
_SUBJECTS = {
    "group": "control group of the victim",
    "others": "sum over the neighbors' control groups",
    "host": "group whose limits all tenants share",
    "allowed": "processors that the victim may use",
}
_ALONE = "throughput / throughput alone, or p99 latency alone / p99 latency; 1 - degradation"


def declare_metric(name: str) -> Column:
    """Declare the window of a metric."""
    first, _, metric = name.partition(".")
    meaning = f"{metric or name} of the {_SUBJECTS.get(first, f'machine ({first})')}, the last seconds"
    return Column(name, Kind.SEQUENCE, Role.FEATURE, GROUPS.get(first, "other_metrics"), meaning=meaning)


COLUMNS = (
    key("result_id", "run, attempt, tenant, second and quantity", Tag.ROW),
    key("quantity", "throughput, or 99 % quantile of the latency", Tag.TASK, Tag.CONFIG),
    key("victim", "workload whose degradation is predicted", Tag.ENTITY, Tag.IDENTITY, Tag.CONFIG),
    key("run", "run of the campaign: windows of a run overlap", Tag.BLOCK),
    key("tenants", "workloads of the run"),
    key("aggressors", "active neighbors in this second", Tag.CONFIG),
    key("scenario", "alone, pair, triple, or dynamic: neighbors that start and stop", Tag.SLICE),
    key("placement", "what the tenants share", Tag.SLICE, Tag.CONFIG),
    key("task_kind", "quantity, and whether tenants have separate cores"),
    Column("intensity", Kind.NUMERICAL, Role.KEY, "problem", "", "share of the closed loop's rate", 0, 1),
    Column(
        "aggressor_intensity",
        Kind.NUMERICAL,
        Role.KEY,
        "problem",
        meaning="mean intensity of the active neighbors; missing without one",
        low=0,
        high=1,
    ),
    number("neighbors", "shares", "active tenants that may use the same processors", low=0),
    number("cores", "shares", "processors, or their quota, that victim and neighbors share", low=0),
    Column("share", Kind.NUMERICAL, Role.TARGET, "problem", "share of alone", _ALONE, 0.01, 3),
    Column(
        "is_reference",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "problem",
        meaning="1 in the seconds alone that the label refers to",
        low=0,
        high=1,
        tags=(Tag.EXCLUDED,),
    ),
    measured("throughput", "operations of the victim", unit="1/s"),
    measured("throughput_alone", "operations of the victim alone, interpolated in time", unit="1/s"),
    measured("latency_p99", "99 % quantile of the latency", unit="s"),
    measured("latency_p99_alone", "99 % quantile of the latency alone", unit="s"),
    measured("reference_spread", "difference of the references before and after over their mean"),
    Column("tenant", Kind.CATEGORICAL, Role.PROVENANCE, "problem", meaning="number of the victim in its run"),
    measured("second", "second of the run"),
    measured("late", "delay of the sample", unit="s"),
    Column("source_file", Kind.CATEGORICAL, Role.PROVENANCE, "problem", meaning="file of the row"),
    measured("source_line", "row of that file, from 1"),
)
