"""The campaign: runs of a plan until the time is spent, one file per finished run, and repeats of unsteady ones.

An interrupted campaign resumes: finished runs are kept, and only the others are measured.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perfcast.domains.interference.measuring.awake import awake_processors
from perfcast.domains.interference.measuring.execution import (
    FailedRunError,
    Record,
    Stage,
    execute,
    janitor,
    start_server,
)
from perfcast.domains.interference.measuring.groups import (
    PREFIX,
    find_hierarchies,
    open_base,
    remove_folders,
    stale_groups,
)
from perfcast.domains.interference.measuring.hardware_counters import HardwareCounters
from perfcast.domains.interference.measuring.labels import MAX_REFERENCE_SPREAD, label_record
from perfcast.domains.interference.measuring.metrics import Sampler
from perfcast.domains.interference.measuring.requirements import (
    choose_placements,
    possible_placements,
    require_linux,
    require_room,
)
from perfcast.domains.interference.measuring.run_files import check_plan, finished_runs, read_record, write_record
from perfcast.domains.interference.measuring.scenarios import PREPARATION_SECONDS, Design, Run, plan_for
from perfcast.domains.interference.measuring.workloads import load_workload
from perfcast.microbench.machine import available_cpus

RUNS_FOLDER = "host_interference_runs"
FIRST_SHARE = 0.9
"""Share of the time for the plan; the remaining time repeats runs with unsteady references."""
_MAX_ATTEMPTS = 3
_FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Errors of the disk, after which no further run can succeed."""
Progress = Callable[[str, int, int], None]
"""Gets the step at work, the finished runs, and all runs."""


@dataclass(frozen=True)
class Settings:
    """Choices of the user. Units: minutes of the whole campaign; seconds of one static run."""

    out: Path
    workloads: tuple[str, ...]
    minutes: float
    seconds: int
    seed: int
    placements: tuple[str, ...] | None = None
    max_spread: float = MAX_REFERENCE_SPREAD

    @property
    def runs_folder(self) -> Path:
        """Folder of finished runs."""
        return self.out / RUNS_FOLDER


def run_campaign(settings: Settings, progress: Progress) -> dict[str, Any]:
    """Measure the runs of the plan that are not finished, then repeat unsteady ones; return facts of the campaign.

    Raises:
        UserError: The machine, the disk or the folder does not permit it.
    """
    require_linux()
    folder = settings.runs_folder
    folder.mkdir(parents=True, exist_ok=True)
    require_room(folder, settings.workloads)
    trees = find_hierarchies(Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text())
    remove_folders(stale_groups(trees))
    for old in folder.glob("scratch-*"):
        if not Path("/proc", old.name.partition("-")[2]).exists():
            shutil.rmtree(old, ignore_errors=True)
    start_server()
    base = open_base(trees, f"{PREFIX}{os.getpid()}")
    scratch = folder / f"scratch-{os.getpid()}"
    with janitor([path for _, path in base.folders], scratch), awake_processors() as awake:
        # the time starts once the libraries are loaded
        end = time.monotonic() + 60 * settings.minutes
        try:
            cpus = available_cpus()
            limits, reasons = sorted(base.limits), possible_placements(base, cpus)
            design = Design(
                settings.workloads, choose_placements(settings.placements, reasons), settings.seed, settings.seconds
            )
            runs = plan_for(design, FIRST_SHARE * 60 * settings.minutes, storage_workloads(settings.workloads))
            check_plan(folder, design, settings.minutes)
            base.raise_weight()
            counters = HardwareCounters(cpus)
            stage = Stage(base, cpus, scratch, Sampler(counters=counters), settings.seed)

            def execute_run(run: Run, attempt: int) -> Record:
                return execute(run, stage, attempt)

            failures = measure_plan(folder, runs, execute_run, progress, end=end)
            repeat_unsteady(folder, runs, execute_run, progress, end=end, max_spread=settings.max_spread)
        finally:
            base.remove()
            shutil.rmtree(scratch, ignore_errors=True)
    return {
        "design": asdict(design),
        "planned_runs": len(runs),
        "failures": failures,
        "impossible_placements": {name: reason for name, reason in reasons.items() if reason},
        "control_groups": [f"v{version}" for version in sorted({version for version, _ in base.folders})],
        "limits": limits,
        "hardware_counters": counters.names,
        "awake_processors": awake,
    }


def storage_workloads(names: Sequence[str]) -> list[str]:
    """Return the workloads that keep files."""
    return [name for name in names if load_workload(name).DISK_MIB]


Execute = Callable[[Run, int], Record]


def measure_plan(
    folder: Path,
    runs: Sequence[Run],
    execute_run: Execute,
    progress: Progress,
    *,
    end: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Measure the runs without a file until `end`; return what failed."""
    finished, failures = {number for number, _ in finished_runs(folder)}, []
    for index, run in enumerate(runs):
        if run.number in finished:
            continue
        left = sum(later.seconds + PREPARATION_SECONDS for later in runs[index:] if later.number not in finished)
        if clock() + run.seconds > end:
            break
        progress(f"{describe_run(run)}, {left / 60:.0f} min left", index, len(runs))
        if failure := _measure(folder, run, 1, execute_run):
            failures.append(failure)
    progress("plan finished", len(runs), len(runs))
    return failures


def repeat_unsteady(
    folder: Path,
    runs: Sequence[Run],
    execute_run: Execute,
    progress: Progress,
    *,
    end: float,
    max_spread: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Repeat runs whose references differ in every attempt so far, the worst first, while time is left."""
    planned = {run.number: run for run in runs}
    for attempt in range(2, _MAX_ATTEMPTS + 1):
        shares: dict[int, float] = {}
        for (number, _), path in finished_runs(folder).items():
            shares[number] = min(shares.get(number, 1.0), rejected_share(read_record(path), max_spread))
        unsteady = [number for number, share in shares.items() if share > 0 and number in planned]
        order = sorted(unsteady, key=lambda number: (-shares[number], number))
        for index, number in enumerate(order):
            run = planned[number]
            if clock() + run.seconds + PREPARATION_SECONDS > end:
                return
            if (number, attempt) not in finished_runs(folder):
                progress(f"repeat of {describe_run(run)}", index, len(order))
                _measure(folder, run, attempt, execute_run)


def rejected_share(record: dict[str, Any], max_spread: float) -> float:
    """Return the share of rows whose labels are rejected; 1 without any row."""
    frame = label_record(record, max_spread=max_spread)
    return float((frame["rejected"] != "").mean()) if len(frame) else 1.0


def describe_run(run: Run) -> str:
    """Return kind and workloads in words."""
    return f"{run.scenario} {run.placement}: {' + '.join(run.workloads)}"


def _measure(folder: Path, run: Run, attempt: int, execute_run: Execute) -> str:
    """Measure a run and write its file; return why it failed, empty without a failure."""
    try:
        record = execute_run(run, attempt)
    except OSError as error:
        if error.errno in _FATAL:
            raise
        return f"run {run.number} ({describe_run(run)}): {error.strerror or error}"
    except FailedRunError as error:
        return f"run {run.number} ({describe_run(run)}): {error}"
    write_record(folder, record)
    return ""
