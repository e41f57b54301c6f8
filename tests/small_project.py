"""Miniature project with a short experiment, and calls of its tools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from perfcast.testing.miniature import make_project
from perfcast.utils.io import sha256

REPOSITORY = Path(__file__).parents[1]
# the folders of results that dvc.yaml pins
PINNED = (
    *("raw", "standard", "features", "splits", "in_domain", "runs", "champion", "leakage", "described"),
    *("evaluation", "headline", "plots", "model_cards"),
)
PATIENCE = 1800  # seconds, on a machine with much else to do
EXPERIMENT = {
    "sources": ["host_gemm"],
    "datasets": ["host_gemm"],
    "splits": ["random"],
    "predictors": ["nearest", "ridge"],
    "plots": ["headline"],
}


def small_project(folder: Path, *, tracking: bool = False, **params: Any) -> Path:
    """Write a project on generated inputs whose whole graph takes seconds."""
    make_project(REPOSITORY, folder, rows=300, seed=1)
    change(folder, **{**EXPERIMENT, **params})
    if not tracking:
        conf = folder / "conf" / "tracking" / "default.yaml"
        conf.write_text(conf.read_text().replace("enabled: true", "enabled: false"))
    return folder


def change(project: Path, **values: Any) -> None:
    """Set parameters of the project's experiment."""
    path = project / "params.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **values}, sort_keys=False))


def environment(project: Path) -> dict[str, str]:
    """Return variables with the tools on the path and without settings of this machine.

    A copy of the code in the project comes before that of the repository.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PERFCAST_", "MLFLOW_", "DVC_"))
    }
    return inherited | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(str(folder / "src") for folder in (project, REPOSITORY)),
        "OMP_NUM_THREADS": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DVC_NO_ANALYTICS": "true",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{role}_{what}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }


def call(project: Path, *command: str, check: bool = True) -> str:
    """Run a command in the project and return its output."""
    done = subprocess.run(
        command, check=False, cwd=project, env=environment(project), capture_output=True, text=True, timeout=PATIENCE
    )
    output = done.stdout + done.stderr
    assert not check or done.returncode == 0, output[-6000:]
    return output


def run_snakemake(project: Path) -> tuple[int, str]:
    """Run Snakemake, which may fail, and return its exit code and output."""
    command, variables = [sys.executable, "-m", "snakemake"], environment(project)
    done = subprocess.run(
        command, check=False, cwd=project, env=variables, capture_output=True, text=True, timeout=PATIENCE
    )
    return done.returncode, done.stdout + done.stderr


def rules_run(output: str) -> set[str]:
    """Return the rules that Snakemake runs or, in a dry run, plans."""
    return set(re.findall(r"^(?:local)?(?:rule|checkpoint) (\w+):$", output, re.MULTILINE))


def digests(project: Path, *parts: str) -> dict[str, str]:
    """Return the digest of every file below folders of results/, Snakemake's own time stamps left out."""
    return {
        str(path.relative_to(project / "results")): sha256(path)
        for part in parts
        for path in sorted((project / "results" / part).rglob("*"))
        if path.is_file() and path.name != ".snakemake_timestamp"
    }


def expect_results_of_a_local_run(project: Path, folder: Path) -> None:
    """Compare the pinned results of a project with a local run of another one."""
    local = small_project(folder)
    call(local, "snakemake")
    expected = digests(local, *PINNED)
    assert expected
    assert digests(project, *PINNED) == expected
    assert (project / "results" / "metrics.json").read_bytes() == (local / "results" / "metrics.json").read_bytes()
    assert "Nothing to be done" in call(project, "snakemake")
