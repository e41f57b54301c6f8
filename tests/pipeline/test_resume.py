"""Killed in the middle, started again: what was finished is kept, and the results are those of an undisturbed run."""

import os
import signal
import subprocess
import sys
import time

import pytest
from small_project import call, digests, environment, rules_run, small_project

pytestmark = pytest.mark.slow
REPRODUCIBLE = ("raw", "standard", "features", "splits", "runs", "evaluation")
PATIENCE = 240  # seconds


def runs(project):
    """The finished trainings, each by its last output."""
    return {path.parent.name for path in project.glob("results/runs/*/*/*/predictions.parquet")}


def kill_after_the_first_training(project):
    """Start Snakemake with one job at a time and kill its whole process group while it trains for the second time."""
    with (project / "killed.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1"],
            cwd=project,
            env=environment(project),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + PATIENCE
            while not runs(project) and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            # the next job has begun when Snakemake has marked its outputs as incomplete
            marks = project / ".snakemake" / "incomplete"
            before = set(marks.iterdir())
            while set(marks.iterdir()) <= before and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    project = small_project(tmp_path_factory.mktemp("undisturbed") / "project")
    call(project, "snakemake")
    return digests(project, *REPRODUCIBLE)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    project = small_project(tmp_path_factory.mktemp("killed") / "project")
    assert kill_after_the_first_training(project) == -signal.SIGKILL, (project / "killed.log").read_text()[-3000:]
    return project


def test_a_killed_run_goes_on_after_unlocking_and_gives_the_same_bytes(killed, undisturbed):
    finished = runs(killed)
    kept = {
        path: path.stat().st_mtime_ns
        for name in finished
        for path in killed.glob(f"results/runs/*/*/{name}/predictions.parquet")
    }
    assert not (killed / "results" / "report.html").exists()
    # A kill leaves the lock of the folder; Snakemake says so, and how to remove it.
    assert "--unlock" in call(killed, "snakemake", check=False)
    call(killed, "snakemake", "--unlock")
    again = call(killed, "snakemake")
    assert not {"ingest", "standardize", "features", "split"} & rules_run(again)
    assert "train" in rules_run(again)
    assert all(path.stat().st_mtime_ns == changed for path, changed in kept.items())
    assert digests(killed, *REPRODUCIBLE) == undisturbed
    assert "Nothing to be done" in call(killed, "snakemake")
