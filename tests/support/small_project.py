"""Miniature project with a short experiment, and calls of its tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from warm_processes import SETTINGS, warm

from perfcast.testing.miniature import make_project
from perfcast.utils.io import sha256

REPOSITORY = Path(__file__).parents[2]
# the folders of results that dvc.yaml pins
PINNED = (
    "raw",
    "standard",
    "features",
    "splits",
    "in_domain",
    "runs",
    "champion",
    "leakage",
    "described",
    "evaluation",
    "headline",
    "plots",
    "model_cards",
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


@contextmanager
def restored(path: Path) -> Iterator[None]:
    """Give a file its content back when the block ends."""
    before = path.read_bytes()
    try:
        yield
    finally:
        path.write_bytes(before)


def environment(project: Path, *, cold: bool = False) -> dict[str, str]:
    """Return variables with the tools on the path and without settings of this machine.

    A copy of the code in the project comes before that of the repository. Where it does not differ, `snakemake` and
    `perfcast` start warm, unless they shall be `cold`: processes of their own that import everything.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PERFCAST_", "MLFLOW_", "DVC_"))
    }
    variables = inherited | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **SETTINGS,
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{role}_{what}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    if not (cold or _has_other_code(project)):
        variables = warm(variables)
    return variables | {"PYTHONPATH": os.pathsep.join(str(folder / "src") for folder in (project, REPOSITORY))}


def _has_other_code(project: Path) -> bool:
    """Return whether a project has a copy of the code that differs from that of the repository."""
    copied = project / "src" / "perfcast"
    if not copied.exists():
        return False
    return any(
        not (copied / path).is_file()
        or (copied / path).read_bytes() != (REPOSITORY / "src" / "perfcast" / path).read_bytes()
        for path in _code_files()
    )


@cache
def _code_files() -> tuple[Path, ...]:
    code = REPOSITORY / "src" / "perfcast"
    return tuple(path.relative_to(code) for path in code.rglob("*.*") if path.is_file() and path.suffix != ".pyc")


def call(project: Path, *command: str, check: bool = True, cold: bool = False) -> str:
    """Run a command in the project and return its output."""
    done = _run(project, command, cold)
    output = done.stdout + done.stderr
    assert not check or done.returncode == 0, output[-6000:]
    return output


def run_snakemake(project: Path, *arguments: str) -> tuple[int, str]:
    """Run Snakemake, which may fail, and return its exit code and output."""
    done = _run(project, ["snakemake", *arguments], cold=False)
    return done.returncode, done.stdout + done.stderr


def located(command: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Return a command with the path of its program: Python looks it up on the path of these tests otherwise."""
    return [shutil.which(command[0], path=variables["PATH"]) or command[0], *command[1:]]


def _run(project: Path, command: Sequence[str], cold: bool) -> subprocess.CompletedProcess[str]:
    variables = environment(project, cold=cold)
    return subprocess.run(
        located(command, variables),
        check=False,
        cwd=project,
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def rules_run(output: str) -> set[str]:
    """Return the rules that Snakemake runs, by the lines on its progress, or plans in a dry run."""
    planned = re.findall(r"^(?:local)?(?:rule|checkpoint) (\w+):$", output, re.MULTILINE)
    return {*planned, *re.findall(r"^\d+ of \d+ jobs done.*: (\w+)", output, re.MULTILINE)}


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
