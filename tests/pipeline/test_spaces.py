"""Paths with spaces: the project, its environment and its results may lie in folders whose names have them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_project import environment, rules_run, small_project


def run(project, python, *words):
    """Run Snakemake with a Python; return its output."""
    variables = environment(project)
    variables["PATH"] = f"{python.parent}{os.pathsep}{variables['PATH']}"
    command = [str(python), "-m", "snakemake", "--cores", "1", "--config", "results=my results", *words]
    done = subprocess.run(command, check=False, cwd=project, env=variables, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a folder") / "my project"
    folder.mkdir()
    return small_project(folder)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Return the Python of this environment by a path with a space."""
    link = tmp_path_factory.mktemp("an environment") / "my env"
    link.symlink_to(Path(sys.prefix), target_is_directory=True)
    return link / "bin" / Path(sys.executable).name


def test_a_dry_run_plans_the_whole_graph(project, python):
    assert {"ingest", "standardize", "train", "report", "record"} <= rules_run(run(project, python, "--dry-run"))


def test_rules_leave_nothing_but_their_outputs(project, python):
    before = {path.name for path in project.iterdir()} | {"my results", ".snakemake"}
    run(project, python, "--until", "features")
    assert (project / "my results" / "features" / "host_gemm.parquet").stat().st_size
    assert {path.name for path in project.iterdir()} == before
    assert {path.name for path in project.parent.iterdir()} == {project.name}
