"""Execution of one run: tenants in their groups, a sample every second, and reports of the tenants."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from perfcast.domains.interference.measuring import metrics
from perfcast.domains.interference.measuring import tenant as tenant_process
from perfcast.domains.interference.measuring.groups import ControlGroup, remove_group
from perfcast.domains.interference.measuring.scenarios import OTHER_CORE, SAME_CORE, WARM_UP_SECONDS, Run

_MIB = 2**20
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_PREPARATION_LIMIT, _END_LIMIT = 120.0, 20.0
_HOST = "host"


class FailedRunError(Exception):
    """A tenant failed or ended early: the run has no result, and others go on."""


@dataclass
class Record:
    """Result of a run: reports of tenants, and metrics of each second and active tenant.

    Units: `started` in seconds of the system's clock; `late` in seconds by which a sample was taken after its time.
    """

    run: Run
    started: float
    reports: list[list[dict[str, Any]]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values, metrics by column; None where a metric is absent."""
        names = sorted({name for row in self.rows for name in row["metrics"]})
        columns = {name: [_five_digits(row["metrics"].get(name)) for row in self.rows] for name in names}
        places = {name: [row[name] for row in self.rows] for name in ("second", "tenant", "late")}
        values = {"started": self.started, "reports": self.reports}
        return {**values, "run": self.run.to_json(), "places": places, "metrics": columns}


def _five_digits(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


@dataclass
class Stage:
    """Place where runs happen.

    Args:
        base: Group of the campaign; without a folder, tenants are plain processes.
        cpus: Processors that runs may use: the first is the shared core.
        scratch: Folder for files of tenants.
    """

    base: ControlGroup
    cpus: Sequence[int]
    scratch: Path
    sampler: metrics.Sampler
    seed: int

    def cpus_of(self, run: Run, tenant: int) -> list[int]:
        """Return the processors that a tenant may use."""
        if run.placement == SAME_CORE:
            return [self.cpus[0]]
        if run.placement == OTHER_CORE:
            return [self.cpus[tenant % len(self.cpus)]]
        return list(self.cpus[:2])


@dataclass
class _Tenant:
    number: int
    process: Any
    connection: Connection
    group: ControlGroup
    cpus: list[int]

    def receive(self, patience: float) -> dict[str, Any]:
        """Return the next message. Raises: FailedRunError when the tenant ended, or none comes in time."""
        try:
            if not self.connection.poll(patience):
                raise FailedRunError(f"a tenant gave no answer for {patience:g} seconds")
            message: dict[str, Any] = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError) as error:
            self.process.join(1)
            raise FailedRunError(f"a tenant ended early (exit code {self.process.exitcode})") from error
        if "error" in message:
            raise FailedRunError(str(message["error"]))
        return message


def start_server() -> None:
    """Start the process that tenants are forked from, with the heavy libraries loaded and one thread each."""
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "perfcast.domains.interference.measuring.workloads"])
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    forkserver.ensure_running()


@contextmanager
def janitor(base: ControlGroup, scratch: Path) -> Iterator[None]:
    """Have groups and files removed at the end, by a process of its own also when this one is killed."""
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    process = context.Process(target=_clean_after, args=(theirs, base.folder, scratch))
    process.start()
    theirs.close()
    try:
        yield
    finally:
        ours.close()
        process.join(10)


def _clean_after(connection: Connection, folder: Path | None, scratch: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        connection.recv_bytes()
    remove_group(folder, patience=8.0)
    shutil.rmtree(scratch, ignore_errors=True)


def execute(run: Run, stage: Stage) -> Record:
    """Run tenants by their timetables, and sample every second.

    Raises:
        FailedRunError: A tenant could not prepare or ended early.
    """
    record = Record(run, time.time())
    host = stage.base.create_child(f"run{run.number}")
    tenants: list[_Tenant] = []
    try:
        if run.quota:
            host.limit_cpu(run.quota)
        for number in range(len(run.workloads)):
            tenants.append(_start(run, number, stage, host))
        # one after another, so that each calibrates alone
        for entry in tenants:
            with suppress(BrokenPipeError):
                entry.connection.send_bytes(b'{"prepare": true}')
            entry.receive(_PREPARATION_LIMIT)
        if run.memory_slack_mib is not None:
            used = sum(entry.group.anonymous_bytes() for entry in tenants)
            host.write("memory.max", str(used + run.memory_slack_mib * _MIB))
        _follow(run, stage, host, tenants, record)
        record.reports = [entry.receive(_END_LIMIT)["seconds"] for entry in tenants]
    finally:
        for entry in tenants:
            entry.connection.close()
        for entry in tenants:
            entry.process.join(2)
            if entry.process.is_alive():
                entry.process.kill()
                entry.process.join(5)
        remove_group(host.folder)
        shutil.rmtree(stage.scratch / f"run{run.number}", ignore_errors=True)
    return record


def _start(run: Run, number: int, stage: Stage, host: ControlGroup) -> _Tenant:
    context = multiprocessing.get_context("forkserver")
    folder = stage.scratch / f"run{run.number}" / str(number)
    folder.mkdir(parents=True)
    ours, theirs = context.Pipe()
    arguments = (theirs, run.workloads[number], str(folder), stage.seed + 10 * run.number + number)
    process = context.Process(target=tenant_process.serve, args=arguments)
    process.start()
    theirs.close()
    group, cpus = host.create_child(f"tenant{number}"), stage.cpus_of(run, number)
    entry = _Tenant(number, process, ours, group, cpus)
    with suppress(ProcessLookupError):  # it ended, which the next message tells
        group.write("cgroup.procs", str(process.pid))
        os.sched_setaffinity(process.pid or 0, cpus)
    return entry


def _follow(run: Run, stage: Stage, host: ControlGroup, tenants: Sequence[_Tenant], record: Record) -> None:
    """Send the timetables, sample at the end of every second, and keep the rows of active tenants."""
    origin = math.ceil(time.monotonic() + 0.2)
    for entry in tenants:
        order = {"origin": origin, "timetable": run.timetable(entry.number)}
        entry.connection.send_bytes(json.dumps(order).encode())
    groups = {str(entry.number): metrics.Group(entry.group.folder, entry.process.pid) for entry in tenants}
    if host.folder:
        groups[_HOST] = metrics.Group(host.folder, with_processes=False)
    fresh = {(entry.tenant, entry.start + second) for entry in run.activities for second in range(WARM_UP_SECONDS)}
    changing = set(range(run.together[0] + WARM_UP_SECONDS, run.together[1]))
    before: metrics.Snapshot | None = None
    earlier_late = 0.0
    for second in range(-1, run.seconds):
        time.sleep(max(0.0, origin + second + 1 - time.monotonic()))
        after = stage.sampler.read(groups)
        late = after.time - (origin + second + 1)
        if before is not None:
            measured = metrics.compute_metrics(before, after)
            active = run.active_at(second)
            for number in active:
                # neighbors that start or stop are what a dynamic run is about: only the phase's beginning is left out
                if (number, second) in fresh and second not in changing:
                    continue
                others = [str(other) for other in active if other != number]
                row = metrics.row_of_group(measured, str(number), others, tenants[number].cpus, _HOST)
                delay = round(max(late, earlier_late), 4)
                record.rows.append({"second": second, "tenant": number, "late": delay, "metrics": row})
        before, earlier_late = after, late
