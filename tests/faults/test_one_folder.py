"""One folder of results under two names, runs at once, and files deleted from results."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest
from killing import Run, assert_whole, results_of, tiny_project
from small_project import call

pytestmark = pytest.mark.faults


def begin(project):
    """Start a run and wait for its first job."""
    run = Run(project)
    while run.poll() and not run.jobs:
        time.sleep(0.02)
    return run


def test_results_under_two_names_are_written_by_one_run(tmp_path, expected):
    project = tiny_project(tmp_path / "project")
    (project / "r2").symlink_to("results")
    first = begin(project)
    second = Run(project, "--config", "results=r2", log="second.log")
    second.wait()
    assert second.process.returncode == 1, second.output()[-3000:]
    assert [line for line in second.output().splitlines() if line.startswith("perfcast: one run at a time")]
    assert "Traceback" not in second.output()
    first.wait()
    assert first.process.returncode == 0, first.output()[-3000:]
    assert_whole(project, expected)


def test_of_runs_started_at_once_one_goes_on_and_the_others_say_why(tmp_path, expected):
    project = tiny_project(tmp_path / "project")
    runs = [Run(project, log=f"{number}.log") for number in range(3)]
    for run in runs:
        run.wait()
    assert sorted(run.process.returncode for run in runs) == [0, 1, 1], [run.output()[-3000:] for run in runs]
    for run in runs:
        refused = "perfcast: one run at a time may write to a folder of results" in run.output()
        assert refused == (run.process.returncode == 1)
        assert "LockException" not in run.output()
    assert_whole(project, expected)


DELETED = (
    "raw/host_gemm",
    "standard/host_gemm.parquet",
    "runs/host_gemm/random/mlp",
    "champion/host_gemm",
    "evaluation/host_gemm",
    "plots/host_gemm",
    "headline",
    "report.html",
)


def test_deleted_results_are_made_again_once(tmp_path, reference, expected):
    project = tmp_path / "project"
    call(tmp_path, "cp", "-a", str(reference[0]), str(project))
    call(project / "results", "rm", "-r", *DELETED)
    call(project, "snakemake")
    assert results_of(project) == expected
    assert "Nothing to be done" in call(project, "snakemake")


def test_copied_project_writes_into_its_own_folder(tmp_path, reference):
    original, copy = reference[0], tmp_path / "a copy"
    before = {path: path.stat().st_mtime_ns for path in original.rglob("*")}
    call(tmp_path, "cp", "-a", str(original), str(copy))
    call(copy / "results", "rm", "-r", "champion/host_gemm", "report.html")
    call(copy, "snakemake")
    assert {path: path.stat().st_mtime_ns for path in original.rglob("*")} == before
    with closing(sqlite3.connect(copy / "results" / "mlflow" / "mlflow.db")) as base:
        # MLflow's experiment Default, which nobody writes to, has a plain path
        assert original.as_uri() not in "".join(base.iterdump())
