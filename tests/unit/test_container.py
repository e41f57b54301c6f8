"""The container's recipe, as far as it can be checked without an engine: what it copies, runs and installs exists."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
BUILD_STAGE = "build"


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions with their words, continued lines joined."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (word.upper(), operands.strip())
        for word, _, operands in (line.partition(" ") for line in joined.splitlines() if line)
    ]


def copied() -> list[str]:
    """Return what is copied from the repository."""
    sources = []
    for word, operands in instructions():
        words = [part for part in shlex.split(operands) if not part.startswith("--")]
        if word == "COPY" and f"--from={BUILD_STAGE}" not in operands:
            sources += words[:-1]
    return sources


def reaches_the_build(path: str) -> bool:
    """Return whether .dockerignore admits a file of the repository; the last matching pattern decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.lstrip("!").removeprefix("**/")
        parents = [path, *map(str, Path(path).parents)]
        fits = any(fnmatch.fnmatch(name, pattern) for name in parents)
        if "**/" in line:
            fits = any(fnmatch.fnmatch(part, pattern) for part in Path(path).parts)
        if fits:
            ignored = not line.startswith("!")
    return not ignored


def test_everything_copied_is_there_and_reaches_the_build():
    sources = copied()
    assert {"requirements.lock", "src", "conf", "workflow", "Snakefile", "params.yaml", "data"} <= {
        source.partition("/")[0] for source in sources
    }
    for source in sources:
        assert (ROOT / source).exists(), source
        assert reaches_the_build(source), source
    for kept_out in ("results/metrics.json", ".venv/bin/python", ".git/config", "src/perfcast/__pycache__/x.pyc"):
        assert not reaches_the_build(kept_out), kept_out
    assert reaches_the_build("src/perfcast/__init__.py")


@pytest.mark.parametrize("command", [operands for word, operands in instructions() if word == "RUN"])
def test_commands_are_shell(command):
    checked = subprocess.run(["sh", "-n", "-c", command], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_the_base_image_has_a_python_that_the_project_runs_on():
    images = [operands.split()[0] for word, operands in instructions() if word == "FROM"]
    assert len(images) == 2
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    oldest, newest = (tuple(map(int, bound.strip("<>=").split("."))) for bound in required.split(","))
    for image in images:
        match = re.fullmatch(r"python:(\d+)\.(\d+)-slim", image)
        assert match, image
        assert oldest <= tuple(map(int, match.groups())) < newest
        assert match.groups() == tuple(map(str, sys.version_info[:2])) or sys.version_info[:2] != (3, 11)


def test_torch_is_the_locked_one():
    (line,) = [operands for word, operands in instructions() if word == "RUN" and "torch==" in operands]
    completed = subprocess.run(
        ["sh", "-c", re.search(r"\$\((.*?)\)", line)[1]], check=True, capture_output=True, text=True, cwd=ROOT
    )
    name, pinned = completed.stdout.strip().split("==")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (allowed,) = [Requirement(text) for text in extras["train"] if Requirement(text).name == name]
    assert allowed.specifier.contains(pinned)


def test_it_runs_snakemake_as_an_unprivileged_user():
    users = [operands for word, operands in instructions() if word == "USER"]
    assert users[-1].isdecimal()
    assert int(users[-1]) >= 1000
    entry = [json.loads(operands) for word, operands in instructions() if word == "ENTRYPOINT"]
    assert entry == [["snakemake"]]
    names = [word for word, _ in instructions()]
    assert names.index("USER") > max(position for position, name in enumerate(names) if name == "RUN")


def test_the_job_of_kubernetes_fits_the_image():
    claim, job = yaml.safe_load_all((ROOT / "workflow/kubernetes/job.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,) = pod["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"]}
    folder = [operands for word, operands in instructions() if word == "WORKDIR"][-1]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {f"{folder}/results", f"{folder}/.snakemake"}
    assert [str(pod["securityContext"]["runAsUser"])] == [
        operands for word, operands in instructions() if word == "USER"
    ]


def test_snakemake_takes_the_arguments_of_the_job():
    _, job = yaml.safe_load_all((ROOT / "workflow/kubernetes/job.yaml").read_text())
    arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
    checked = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments, "--version"], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
