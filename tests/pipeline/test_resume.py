"""A killed run continues after `snakemake --unlock`, and its results are those of an undisturbed run."""

import os
import signal
import subprocess
import sys
import time

import pytest
from small_project import call, digests, environment, rules_run, small_project

pytestmark = pytest.mark.slow
REPRODUCIBLE = ("raw", "standard", "features", "splits", "in_domain", "runs", "evaluation")
PATIENCE = 240  # seconds


def trained(project):
    """The predictions of the trainings that finished."""
    return sorted(project.glob("results/runs/*/*/*/predictions.parquet"))


def kill_in_the_second_training(project):
    """Start Snakemake with one job at a time and kill its whole process group once it trains for the second time."""
    log = project / "killed.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1"],
            cwd=project,
            env=environment(project),
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + PATIENCE
            while log.read_text().count("rule train:") < 2 and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == -signal.SIGKILL, log.read_text()[-3000:]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    project = small_project(tmp_path_factory.mktemp("undisturbed") / "project")
    call(project, "snakemake")
    return digests(project, *REPRODUCIBLE)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    project = small_project(tmp_path_factory.mktemp("killed") / "project")
    kill_in_the_second_training(project)
    return project


@pytest.mark.reliability("a run killed with all its processes")
def test_killed_run_continues_to_equal_bytes(killed, undisturbed):
    (finished,) = trained(killed)
    written = finished.stat().st_mtime_ns
    assert "--unlock" in call(killed, "snakemake", check=False)
    assert trained(killed) == [finished]
    call(killed, "snakemake", "--unlock")
    again = call(killed, "snakemake")
    assert not {"ingest", "standardize", "features", "split"} & rules_run(again)
    assert "train" in rules_run(again)
    assert len(trained(killed)) == 2
    assert finished.stat().st_mtime_ns == written
    assert digests(killed, *REPRODUCIBLE) == undisturbed
    assert "Nothing to be done" in call(killed, "snakemake")
