"""The campaign: runs of a plan until the time is spent, with one file per finished run, and the table of all of them.

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
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.interference.measuring import execution, groups, scenarios
from perfcast.domains.interference.measuring.labels import label_record
from perfcast.domains.interference.measuring.metrics import Sampler, require_linux
from perfcast.domains.interference.measuring.workloads import load_workload
from perfcast.domains.interference.sources.host_interference import LABELS, PLACES
from perfcast.microbench.machine import available_cpus, describe_machine
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, read_json, write_json

NAME = "host_interference"
RUNS_FOLDER = "host_interference_runs"
_FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Errors of the disk, after which no further run can succeed."""
_RUN_FILE = re.compile(r"run-(\d{5})\.json\.gz")
_LARGEST_RECORD = 200_000_000
"""Bytes of a record, beyond which the file is damaged."""
DIGITS = 3
"""Significant digits of a metric: counters of a second are noisier."""
MIN_VARYING = 0.005
"""Share of rows that must differ from the most frequent value, else a metric counts as constant."""
Progress = Callable[[str, int, int], None]
"""Gets the step at work, the finished runs, and all runs."""


def measure_interference(out: Path, design: scenarios.Design, minutes: float, progress: Progress) -> list[str]:
    """Run the campaign, write table and description, and return notes for the user.

    Placements of the design that are impossible here are left out. Units: minutes of the whole campaign.
    Raises: UserError when nothing could be measured.
    """
    facts = run_campaign(out / RUNS_FOLDER, design, minutes, progress)
    frame = collect_rows(out / RUNS_FOLDER)
    if frame.empty:
        why = facts["failures"][0] if facts["failures"] else "the time ended before the first run"
        raise UserError("a campaign needs a finished run", why, "give a larger --budget-minutes")
    table, dropped = compact_metrics(frame)
    quality = {**facts, **summarize_quality(frame), **dropped}
    write_table(out, table, quality)
    missing = [f"{name} is missing: {reason}" for name, reason in facts["impossible_placements"].items()]
    if (left := facts["planned_runs"] - quality["runs"]) > 0:
        missing.append(f"{left} of {facts['planned_runs']} runs are missing: start again to continue")
    rejected = ", ".join(f"{count} {why}" for why, count in quality["rejected"].items())
    return [
        f"measured {quality['rows']} labeled seconds of {quality['runs']} runs with {quality['metrics']} metrics; "
        f"{quality['accepted_rows']} have steady references",
        *(f"{name}: median degradation together {100 * low:.0f} %" for name, low in quality["degradation"].items()),
        *([f"rejected: {rejected}"] if rejected else []),
        *missing,
        *facts["failures"][:5],
    ]


def run_campaign(folder: Path, design: scenarios.Design, minutes: float, progress: Progress) -> dict[str, Any]:
    """Measure the runs of the plan that are not finished; return facts of the campaign.

    Raises:
        UserError: The machine, the disk or the folder does not permit it.
    """
    require_linux()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("scratch-*"):
        if not Path("/proc", old.name.partition("-")[2]).exists():
            shutil.rmtree(old, ignore_errors=True)
    execution.start_server()
    tree = groups.find_tree(Path("/proc/self/mounts").read_text())
    base = groups.open_base(tree, Path("/proc/self/cgroup").read_text(), f"{groups.PREFIX}{os.getpid()}")
    scratch = folder / f"scratch-{os.getpid()}"
    with execution.janitor(base, scratch), ExitStack() as open_files:
        with suppress(OSError):  # not permitted
            # Processors stay awake while this file is open. A tenant that waits often, such as a server, would pay for
            # waking a processor when it runs alone, and seem faster beside neighbors that keep the processor busy.
            open_files.enter_context(Path("/dev/cpu_dma_latency").open("wb", buffering=0)).write(bytes(4))
        # the time starts once the libraries are loaded
        end = time.monotonic() + 60 * minutes
        try:
            cpus = available_cpus()
            reasons = possible_placements(base, cpus)
            design = replace(design, placements=tuple(name for name, reason in reasons.items() if not reason))
            runs = scenarios.plan_for(design, 60 * minutes)
            check_plan(folder, design, minutes)
            with suppress(OSError):  # tenants go before other work of the machine, where the group has controllers
                base.write("cpu.weight", "10000")
            stage = execution.Stage(base, cpus, scratch, Sampler(), design.seed)
            failures = measure_plan(folder, runs, lambda run: execution.execute(run, stage), progress, end=end)
        finally:
            groups.remove_group(base.folder)
            shutil.rmtree(scratch, ignore_errors=True)
    return {
        "design": asdict(design),
        "planned_runs": len(runs),
        "failures": failures,
        "impossible_placements": {name: reason for name, reason in reasons.items() if reason},
    }


def possible_placements(base: groups.ControlGroup, cpus: Sequence[int]) -> dict[str, str]:
    """Return every placement with the reason why it is impossible here, empty where it is possible."""
    one_core = "this process can use one core alone" if len(cpus) < 2 else ""
    reasons = {name: "" if name == scenarios.SAME_CORE else one_core for name in scenarios.PLACEMENTS}
    for name, limit in ((scenarios.QUOTA, groups.CPU), (scenarios.MEMORY, groups.MEMORY)):
        if limit not in base.limits:
            reasons[name] = f"no control group with a limit of {limit} is permitted"
    return reasons


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


def collect_rows(folder: Path) -> pd.DataFrame:
    """Return the labeled rows of every run."""
    records = [read_record(path) for path in finished_runs(folder).values()]
    begin = min((record["started"] for record in records), default=0.0)
    labeled = [label_record(record, begin=begin) for record in records]
    return pd.concat(labeled or [pd.DataFrame(columns=[*PLACES, *LABELS])], ignore_index=True)


def compact_metrics(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Round metrics and drop constant ones; return the table, and what was dropped.

    Rows are not selected, and labels are not looked at.
    """
    fixed = [*PLACES, *LABELS]
    metrics = frame[[name for name in frame if name not in fixed]].sort_index(axis=1)
    varying = [name for name in metrics if is_varying(metrics[name])]
    labels = frame[fixed].copy()
    for name in LABELS[:-1]:
        values = labels[name].astype(float)
        labels[name] = values.round(4).astype("float32") if name.startswith("degradation") else round_digits(values, 4)
    table = pd.concat([labels, metrics[varying].apply(round_digits)], axis=1)
    return table, {"metrics": len(varying), "constant_metrics": len(metrics.columns) - len(varying)}


def is_varying(values: pd.Series) -> bool:
    """Return whether a metric takes other values than its most frequent one in enough rows; absence is a value too."""
    frequent = values.value_counts(dropna=False, normalize=True)
    return bool(values.notna().any() and frequent.iloc[0] <= 1 - MIN_VARYING)


def round_digits(values: pd.Series, digits: int = DIGITS) -> pd.Series:
    """Return values with some significant digits, in single precision; absent ones stay absent."""
    numbers = values.to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(numbers))))
        rounded = np.where(np.isfinite(scale), np.round(numbers * scale) / scale, numbers)
    return pd.Series(rounded, values.index, name=values.name, dtype="float32")


def summarize_quality(frame: pd.DataFrame) -> dict[str, Any]:
    """Return counts of labeled rows, why some are rejected, and the median degradation by placement, as JSON values."""
    accepted = frame[frame["rejected"] == ""]
    together = accepted[accepted["phase"] == scenarios.TOGETHER].groupby("placement")["degradation"].median()
    reasons = Counter(reason for text in frame["rejected"] for reason in str(text).split("+") if reason)
    return {
        **{"rows": len(frame), "accepted_rows": len(accepted), "runs": int(frame["run"].nunique())},
        "rejected": dict(sorted(reasons.items())),
        "degradation": {str(name): round(float(median), 4) for name, median in together.items()},
    }


def write_table(out: Path, table: pd.DataFrame, quality: dict[str, Any]) -> None:
    """Write host_interference.parquet and host_interference.json into a folder."""
    with atomic_path(out / f"{NAME}.parquet") as path:
        table.to_parquet(path, index=False, compression="zstd", compression_level=15)
    meanings = {name: load_workload(name).MEANING for name in quality["design"]["workloads"]}
    write_json(
        out / f"{NAME}.json",
        {**describe_machine(), "quality": quality, "workloads": meanings, "placements": scenarios.PLACEMENTS},
    )
