"""Commands and code of the pages run on generated data, in the order of each page.

`test_readme.py` parses every command. Here those of users are executed. Runs of the pipeline and measurements take
long, so they are only parsed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import deployment_project
import pytest
import training_run_project
from champion_project import project
from documented_commands import FENCE, PROJECT, SHELLS, TEXT, read_commands
from serving_project import request, served

from perfcast.cli.main import main

EXECUTED = {"predict", "rank", "what-if", "similar", "compare", "plan", "sources", "config", "facts"}
"""Commands of perfcast that are executed with all their documented arguments."""

PARSED = {"serve", "measure", "tune", "reproduced", "doctor", "pipeline"}
"""Commands of perfcast that need a full run, a network or minutes, or that never end."""

OTHERS = {
    *("make", "snakemake", "dvc", "mlflow", "pip", "pre-commit", "python", "docker", "kubectl", "sbatch", "apt-get"),
    *("source", "cd", "export", "git"),
}
"""First words of the other commands: tools that other tests run, and the shell's own."""

ADDRESS = "http://127.0.0.1:8000"
PYTHON_PARSED = ("mlflow",)
"""Modules of code that needs a finished run."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a champion of generated results, as the pages have it."""
    place = tmp_path_factory.mktemp("project")
    (place / "results" / "champion").mkdir(parents=True)
    for folder in (project().results, deployment_project.results(), training_run_project.results()):
        for entry in (folder / "champion").iterdir():
            (place / "results" / "champion" / entry.name).symlink_to(entry)
        for entry in folder.iterdir():
            if entry.name not in ("champion", "raw"):
                (place / "results" / entry.name).symlink_to(entry)
    (place / "results" / "systems").mkdir()
    for name in ("llm", "scaling"):
        (place / "results" / "systems" / name).symlink_to(place / "results")
    shutil.copytree(PROJECT / "conf", place / "conf")
    shutil.copy(PROJECT / "params.yaml", place)
    return place


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(project().champion) as running:
        yield running


def blocks(page: str, languages: set[str]) -> list[str]:
    return [block for language, block in FENCE.findall(TEXT[page]) if language in languages]


def shell_lines(text: str) -> list[str]:
    """Return the commands of a block, here-documents and continued lines in one."""
    lines, inside = [], ""
    for line in text.replace("\\\n", " ").splitlines():
        if inside:
            lines[-1] += f"\n{line}"
            inside = "" if line == inside else inside
            continue
        lines.append(line.strip())
        if "<<'" in line:
            inside = line.split("<<'")[1].split("'")[0]
    return [line for line in lines if line]


PAGES = [page for page in TEXT if page != "README.md"]
SHELL_PAGES = [page for page in PAGES if blocks(page, {"bash"})]
CODE_PAGES = [page for page in PAGES if blocks(page, {"python"})]


@pytest.mark.parametrize("page", SHELL_PAGES)
def test_commands_of_a_page_run(page: str, folder: Path, address: str, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    for block in blocks(page, {"bash"}):
        for line in shell_lines(block):
            run_line(line, page, address, capsys)


def run_line(line: str, page: str, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Execute a documented line, or check that other tests cover it."""
    if "<<'" in line:
        subprocess.run(["bash", "-c", line], check=True)
        return
    for words in read_commands(line):
        if words[0] == "perfcast":
            assert words[1] in EXECUTED | PARSED, f"{page}: {line}"
            if words[1] in EXECUTED:
                assert main(words[1:]) == 0, f"{page}: {line}\n{capsys.readouterr().err}"
        elif words[0] == "curl":
            check_curl(words, address)
        else:
            assert words[0] in OTHERS, f"{page}: {line}"


def check_curl(words: tuple[str, ...], address: str) -> None:
    """Send the documented request to the server of the generated champion."""
    options = dict(zip(words[2::2], words[3::2], strict=True))
    assert words[1].startswith(ADDRESS)
    name, value = options["-H"].split(": ")
    reply = request(words[1].replace(ADDRESS, address), options["-d"].encode(), {name: value})
    assert reply.status == 200, reply.body
    assert reply.json()["machines"]


@pytest.mark.parametrize("page", CODE_PAGES)
def test_python_of_a_page_runs(page: str, folder: Path, address: str, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    for block in blocks(page, {"python"}):
        code = compile(block.replace(ADDRESS, address), page, "exec")
        if not any(f"import {name}" in block for name in PYTHON_PARSED):
            exec(code, {})
            assert capsys.readouterr().out


def test_the_miniature_project_plans(tmp_path: Path) -> None:
    text = TEXT["docs/getting-started.md"]
    assert "perfcast pipeline fake demo\ncd demo\nsnakemake" in text
    assert main(["pipeline", "fake", str(tmp_path / "demo"), "--rows", "300", "--project", str(PROJECT)]) == 0
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    done = subprocess.run(
        ["snakemake", "--cores", "2", "--dry-run"],
        cwd=tmp_path / "demo",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_documented_make_targets_plan() -> None:
    targets = {
        words[1]
        for page in TEXT
        for block in blocks(page, SHELLS)
        for words in read_commands(block)
        if words[0] == "make" and len(words) > 1
    }
    assert {"run", "setup"} <= targets
    for target in sorted(targets):
        done = subprocess.run(["make", "-n", target], cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_every_executed_command_is_documented() -> None:
    typed = {
        words[1]
        for page in PAGES
        for block in blocks(page, {"bash"})
        for words in read_commands(block)
        if words[0] == "perfcast"
    }
    assert typed >= EXECUTED


def test_documented_routes_are_those_of_the_server(address: str) -> None:
    api = json.loads(request(f"{address}/openapi.json").body)["paths"]
    rows = [line.split("`")[1].split() for line in TEXT["docs/serve.md"].splitlines() if line.startswith("| `")]
    documented = {path.split("?")[0]: method.lower() for method, path in rows}
    assert {path: method for path, method in documented.items() if path != "/docs"} == {
        path: next(iter(methods)) for path, methods in api.items()
    }


@pytest.mark.parametrize(
    "line", ["perfcast unknown-command", "perfcast predict --processor nobody-knows-it", "rm -rf x"]
)
def test_a_wrong_command_is_detected(line: str, folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(AssertionError):
        run_line(line, "a page", ADDRESS, capsys)


def test_continued_lines_and_here_documents_are_one_command() -> None:
    text = "cat > a.csv <<'END'\nx,y\nEND\nperfcast predict a.csv \\\n  --brief\n"
    assert [shlex.split(line)[0] for line in shell_lines(text)] == ["cat", "perfcast"]
