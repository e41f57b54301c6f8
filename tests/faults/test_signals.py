"""Jobs or Snakemake that are killed alone, and signals: the run continues to the same bytes."""

import os
import signal
import time

import psutil
import pytest
from killing import Run, finish, tiny_project

pytestmark = pytest.mark.faults


def start_until(project, rule):
    """Start a run and return it once a job of a rule computes."""
    run = Run(project)
    while run.poll() and not jobs_of(run, rule):
        time.sleep(0.02)
    assert run.process.poll() is None, run.output()[-3000:]
    return run


def jobs_of(run, rule):
    """Return the processes of a rule's jobs."""
    processes = []
    for process in psutil.Process(run.process.pid).children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if rule in words and "perfcast" in words:
            processes.append(process)
    return processes


def test_killed_job_fails_its_run_and_the_next_one_continues(tmp_path, expected):
    project = tiny_project(tmp_path / "project")
    run = start_until(project, "train")
    for process in jobs_of(run, "train"):
        process.kill()
    run.wait()
    assert run.process.returncode == 1, run.output()[-3000:]
    assert "Traceback" not in run.output()
    finish(project, expected)


def test_orphaned_jobs_end_and_the_next_run_continues(tmp_path, expected):
    project = tiny_project(tmp_path / "project")
    run = start_until(project, "train")
    orphans = psutil.Process(run.process.pid).children(recursive=True)
    run.process.kill()
    run.process.wait()
    early = Run(project, log="early.log")
    early.wait()
    assert "Traceback" not in early.output()
    psutil.wait_procs(orphans, timeout=240)
    finish(project, expected)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_signal_ends_a_run_and_the_next_one_continues(tmp_path, expected, number):
    project = tiny_project(tmp_path / "project")
    run = start_until(project, "train")
    orphans = psutil.Process(run.process.pid).children(recursive=True)
    os.killpg(run.process.pid, number)
    run.wait()
    assert run.process.returncode != 0, run.output()[-3000:]
    psutil.wait_procs(orphans, timeout=240)
    finish(project, expected)
