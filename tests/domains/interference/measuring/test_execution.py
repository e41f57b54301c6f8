"""Real tenants for a few seconds: reports, rows, and nothing left behind, also after a kill."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from perfcast.domains.interference.measuring.execution import FailedRunError, Stage, execute, start_server
from perfcast.domains.interference.measuring.groups import ControlGroup
from perfcast.domains.interference.measuring.labels import label_record
from perfcast.domains.interference.measuring.metrics import Sampler
from perfcast.domains.interference.measuring.scenarios import Active, Run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def make_run(*workloads, end=3):
    activities = (Active(0, 0, 2), *(Active(tenant, 2, end) for tenant in range(len(workloads))))
    return Run(7, "pair", "shared_cores", workloads, (0.05,) * len(workloads), (2, end), activities)


def make_stage(folder):
    return Stage(ControlGroup(None), sorted(os.sched_getaffinity(0))[:2], folder / "scratch", Sampler(), seed=0)


def test_a_run_reports_every_second_and_leaves_nothing(tmp_path):
    start_server()
    stage, run = make_stage(tmp_path), make_run("key_value", "synchronous_write")
    record = execute(run, stage)
    assert [row["second"] for row in record.rows] == [1]  # the others are the first of a phase
    assert {entry["second"] for entry in record.reports[0]} >= {0, 1, 2}
    assert {entry["second"] for entry in record.reports[1]} >= {2}
    frame = label_record(record.to_json())
    assert len([name for name in frame if "." in name]) >= 200
    assert frame["group.processes.count"].iloc[0] == 2  # the client and its server
    assert not list(stage.scratch.iterdir())
    assert not multiprocessing.active_children()


def test_a_workload_that_fails_ends_its_run_alone(tmp_path):
    start_server()
    stage = make_stage(tmp_path)
    with pytest.raises(FailedRunError, match="ended early"):
        execute(make_run("no_such_workload"), stage)
    assert not multiprocessing.active_children()
    assert not list(stage.scratch.iterdir())


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_kill_leaves_no_process_no_file_and_no_group(tmp_path, number):
    command = [sys.executable, "-m", "perfcast", "measure", "interference", "--out", str(tmp_path)]
    campaign = subprocess.Popen([*command, "--workloads", "key_value,page_cache", "--budget-minutes", "1"])
    folder = tmp_path / f"host_interference_runs/scratch-{campaign.pid}"
    tenants = wait_for(lambda: _users_of(folder), 200)
    campaign.send_signal(number)
    campaign.wait(60)
    assert wait_for(lambda: not folder.exists() and not any(Path("/proc", process).exists() for process in tenants), 60)
    assert wait_for(lambda: not list(Path("/sys/fs/cgroup").rglob(f"perfcast-interference-{campaign.pid}")), 60)


def wait_for(condition, patience):
    end = time.monotonic() + patience
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def _users_of(folder):
    """Return the processes that have a file in a folder open."""
    users = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if str(folder) in str(link.readlink()):
                users.add(link.parts[2])
    return users
