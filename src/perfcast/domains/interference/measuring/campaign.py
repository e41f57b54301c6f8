"""The campaign: runs of a plan until the time is spent, with one file per finished run.

An interrupted campaign resumes: finished runs are kept, and only the others are measured.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perfcast.domains.interference.measuring import execution, groups, scenarios
from perfcast.domains.interference.measuring.metrics import Sampler, require_linux
from perfcast.domains.interference.measuring.workloads import load_workload
from perfcast.microbench.machine import available_cpus
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, read_json, write_json

RUNS_FOLDER = "host_interference_runs"
_FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Errors of the disk, after which no further run can succeed."""
_RESERVE_MIB = 1024
"""Room on the disk beside the files of workloads."""
_RUN_FILE = re.compile(r"run-(\d{5})\.json\.gz")
_LARGEST_RECORD = 200_000_000
"""Bytes of a record, beyond which the file is damaged."""
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

    @property
    def runs_folder(self) -> Path:
        """Folder of finished runs."""
        return self.out / RUNS_FOLDER


def run_campaign(settings: Settings, progress: Progress) -> dict[str, Any]:
    """Measure the runs of the plan that are not finished; return facts of the campaign.

    Raises:
        UserError: The machine, the disk or the folder does not permit it.
    """
    require_linux()
    folder = settings.runs_folder
    folder.mkdir(parents=True, exist_ok=True)
    require_room(folder, settings.workloads)
    trees = groups.find_hierarchies(Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text())
    for old in folder.glob("scratch-*"):
        if not Path("/proc", old.name.partition("-")[2]).exists():
            shutil.rmtree(old, ignore_errors=True)
    execution.start_server()
    base = groups.open_base(trees, f"{groups.PREFIX}{os.getpid()}")
    scratch = folder / f"scratch-{os.getpid()}"
    with execution.janitor(base.paths, scratch), execution.awake_processors() as awake:
        # the time starts once the libraries are loaded
        end = time.monotonic() + 60 * settings.minutes
        try:
            cpus = available_cpus()
            limits, reasons = sorted(base.limits), possible_placements(base, cpus)
            placements = tuple(name for name, reason in reasons.items() if not reason)
            design = scenarios.Design(settings.workloads, placements, settings.seed, settings.seconds)
            storage = [name for name in settings.workloads if load_workload(name).DISK_MIB]
            runs = scenarios.plan_for(design, 60 * settings.minutes, storage)
            check_plan(folder, design, settings.minutes)
            base.raise_weight()
            stage = execution.Stage(base, cpus, scratch, Sampler(), settings.seed)
            failures = measure_plan(folder, runs, lambda run: execution.execute(run, stage), progress, end=end)
        finally:
            groups.remove_folders(base.paths)
            shutil.rmtree(scratch, ignore_errors=True)
    return {
        "design": asdict(design),
        "planned_runs": len(runs),
        "failures": failures,
        "impossible_placements": {name: reason for name, reason in reasons.items() if reason},
        "control_groups": [f"v{version}" for version in sorted({version for version, _ in base.folders})],
        "limits": limits,
        "awake_processors": awake,
    }


def possible_placements(base: groups.GroupFolders, cpus: Sequence[int]) -> dict[str, str]:
    """Return every placement with the reason why it is impossible here, empty where it is possible."""
    one_core = "this process can use one core alone" if len(cpus) < 2 else ""
    reasons = {name: "" if name == scenarios.SAME_CORE else one_core for name in scenarios.PLACEMENTS}
    for name, limit in ((scenarios.QUOTA, groups.CPU), (scenarios.MEMORY, groups.MEMORY)):
        if limit not in base.limits:
            reasons[name] = f"no control group with a limit of {limit} is permitted"
    return reasons


def require_room(folder: Path, workloads: Sequence[str]) -> None:
    """Raise UserError when the disk lacks room for the files of three tenants and the results."""
    sizes = sorted((load_workload(name).DISK_MIB for name in workloads), reverse=True)
    needed, free = _RESERVE_MIB + sum(sizes[:3]), shutil.disk_usage(folder).free // 2**20
    if free < needed:
        raise UserError(
            f"--out must be on a disk with {needed} MiB of room", f"it has {free} MiB", "name another folder"
        )


def check_plan(folder: Path, design: scenarios.Design, minutes: float) -> None:
    """Write the plan's settings, or compare them with those of the campaign to resume.

    A longer time continues the same plan, so it may change. Raises: UserError when other settings differ.
    """
    path = folder / "plan.json"
    values = json.loads(json.dumps(asdict(design)))
    before = read_json(path) if path.exists() else values
    if differing := [name for name, value in values.items() if before.get(name) != value]:
        requirement = f"a campaign in {folder} resumes with the same settings"
        raise UserError(requirement, f"{differing[0]} differs", "name another --out, or remove the folder")
    write_json(path, {**values, "minutes": minutes})


def finished_runs(folder: Path) -> dict[int, Path]:
    """Return the files of finished runs by number, in order."""
    matches = ((_RUN_FILE.fullmatch(path.name), path) for path in sorted(folder.glob("run-*.json.gz")))
    return {int(match[1]): path for match, path in matches if match}


def read_record(path: Path) -> dict[str, Any]:
    """Return the record of a finished run. Raises: UserError for a damaged file."""
    try:
        with gzip.open(path, "rb") as file:
            record = json.loads(file.read(_LARGEST_RECORD))
        scenarios.Run.from_json(record["run"])
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        remedy = "remove it, and measure again"
        raise UserError(f"{path} must be a finished run", "it cannot be read", remedy) from error
    return dict(record)


def measure_plan(
    folder: Path,
    runs: Sequence[scenarios.Run],
    execute_run: Callable[[scenarios.Run], execution.Record],
    progress: Progress,
    *,
    end: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Measure the runs without a file until `end`, and write their files; return what failed."""
    finished, failures = finished_runs(folder), []
    for index, run in enumerate(runs):
        if run.number in finished:
            continue
        left = sum(
            later.seconds + scenarios.PREPARATION_SECONDS for later in runs[index:] if later.number not in finished
        )
        if clock() + run.seconds > end:
            break
        name = f"{run.scenario} {run.placement}: {' + '.join(run.workloads)}"
        progress(f"{name}, {left / 60:.0f} min left", index, len(runs))
        try:
            record = execute_run(run)
        except (execution.FailedRunError, OSError) as error:
            if isinstance(error, OSError) and error.errno in _FATAL:
                raise
            failures.append(f"run {run.number} ({name}): {getattr(error, 'strerror', None) or error}")
            continue
        with atomic_path(folder / f"run-{run.number:05d}.json.gz") as path:
            text = json.dumps(record.to_json(), allow_nan=False, separators=(",", ":"))
            path.write_bytes(gzip.compress(text.encode(), compresslevel=6, mtime=0))
    progress("plan finished", len(runs), len(runs))
    return failures
