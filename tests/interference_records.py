"""Records of runs as the execution writes them, with any throughput."""

from __future__ import annotations

from perfcast.domains.interference.measuring.execution import Record
from perfcast.domains.interference.measuring.scenarios import PLACEMENTS, Design, plan_runs

NAMES = ("sort", "triad", "http", "compress")
DESIGN = Design(NAMES, tuple(PLACEMENTS), seed=0, seconds=12)


def find_run(scenario, placement=None):
    runs = plan_runs(DESIGN)
    return next(run for run in runs if run.scenario == scenario and placement in (None, run.placement))


def make_record(run, rate=lambda tenant, second: 100.0, *, late=0.0, steal=0.0, tail=0.001, started=1000.0):
    """Return a record: `rate` gives the operations of a tenant in a second."""
    record = Record(run, started)
    record.reports = [
        [
            {
                "second": second,
                "operations": rate(tenant, second),
                "ended": int(rate(tenant, second)),
                "latency_p99": tail * 100 / max(rate(tenant, second), 1),
            }
            for second in range(run.seconds)
            if tenant in run.active_at(second)
        ]
        for tenant in range(len(run.workloads))
    ]
    for second in range(run.seconds):
        for tenant in run.active_at(second):
            metrics = {
                "stat.ctxt": 10.0 * second + tenant,
                "same": 1.0,
                "allowed.steal": steal,
                "stat.cpu.steal": steal,
            }
            metrics |= {"copy": 3 * metrics["stat.ctxt"], **({"rare": 1.0 + second} if tenant else {})}
            record.rows.append({"second": second, "tenant": tenant, "late": late, "metrics": metrics})
    return record
