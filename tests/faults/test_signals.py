"""Jobs or Snakemake that are killed alone, signals, and wrong times of files: the run continues to the same bytes."""

import os
import signal
import time

import psutil
import pytest
from killing import Run, finish, half_written, list_leftovers, tiny_project

pytestmark = pytest.mark.faults
DAY = 86_400


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


@pytest.mark.reliability("a job of a run killed")
@pytest.mark.parametrize("rule", ["standardize", "train", "evaluate"])
def test_killed_job_fails_its_run_and_the_next_one_continues(tmp_path, expected, rule):
    project = tiny_project(tmp_path / "project")
    run = start_until(project, rule)
    for process in jobs_of(run, rule):
        process.kill()
    run.wait()
    assert run.process.returncode == 1, run.output()[-3000:]
    assert "Traceback" not in run.output()
    finish(project, expected)


@pytest.mark.reliability("Snakemake killed alone")
@pytest.mark.parametrize("rule", ["standardize", "train"])
def test_orphaned_jobs_end_and_the_next_run_continues(tmp_path, expected, rule):
    project = tiny_project(tmp_path / "project")
    run = start_until(project, rule)
    orphans = psutil.Process(run.process.pid).children(recursive=True)
    run.process.kill()
    run.process.wait()
    early = Run(project, log="early.log")
    early.wait()
    assert "Traceback" not in early.output()
    psutil.wait_procs(orphans, timeout=240)
    finish(project, expected)


@pytest.mark.reliability("a run ended by a signal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("group", [False, True], ids=["Snakemake", "all"])
def test_signal_ends_a_run_and_the_next_one_continues(tmp_path, expected, number, group):
    project = tiny_project(tmp_path / "project")
    run = start_until(project, "train")
    orphans = psutil.Process(run.process.pid).children(recursive=True)
    if group:
        os.killpg(run.process.pid, number)
    else:
        run.process.send_signal(number)
    run.wait()
    assert run.process.returncode != 0, run.output()[-3000:]
    psutil.wait_procs(orphans, timeout=240)
    finish(project, expected)


@pytest.mark.reliability("times of files in the future or the past", cases=3)
def test_times_of_files_change_no_byte(tmp_path, expected):
    project = tiny_project(tmp_path / "project")
    run = Run(project)
    run.wait()
    for name, days in (("standard", 2), ("features", -1000), ("splits", 400)):
        moment = time.time() + days * DAY
        for path in (project / "results" / name).rglob("*.parquet"):
            os.utime(path, (moment, moment))
        again = Run(project, log=f"{name}.log")
        again.wait()
        assert again.process.returncode == 0, again.output()[-3000:]
        assert not half_written(project, expected)
        assert not [path for path in list_leftovers(project) if path.startswith("results")]
