"""Commands, code, paths and names of the pages: every command line parses, and those of users run on generated data.

Pages run in their order. Runs of the pipeline and measurements take long, so they are only parsed.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import deployment_project
import pytest
import training_run_project
import yaml
from bridged_project import bridged_results
from champion_project import project
from power_project import power_folder
from serving_project import request, served

import perfcast.cli.main
from perfcast.cli import command_parser
from perfcast.cli.command_parser import FAMILIES, MEMBERS, load_command
from perfcast.cli.main import COMMANDS, main
from perfcast.config.conf_files import read_yaml
from perfcast.config.experiment_params import validate
from perfcast.inference.reference_data import ReferenceData
from perfcast.utils.result_digests import record_digests

PROJECT = Path(__file__).parents[2]
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PATHS = [*(PROJECT / name for name in ROOT_PAGES), *sorted((PROJECT / "docs").rglob("*.md"))]
TEXT = {str(path.relative_to(PROJECT)): path.read_text(encoding="utf-8") for path in PATHS}
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELLS = {"", "bash", "sh", "console", "shell"}
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?\n.*?^\1$", re.MULTILINE | re.DOTALL)
SUBSTITUTION = re.compile(r"^\w+=\$\((.*)\)$", re.MULTILINE)
"""A variable that holds the output of a command."""
OPERATORS = {"&&", "||", ";", "|", "|&", "&"}


def read_commands(text: str) -> list[tuple[str, ...]]:
    """Return the commands of a block of shell lines, split into words."""
    joined = HERE_DOCUMENT.sub("", text).replace("\\\n", " ")
    lines = SUBSTITUTION.sub(r"\1", joined).splitlines()
    commands: list[tuple[str, ...]] = []
    for line in lines:
        try:
            words = shlex.split(line.strip().removeprefix("$ "), comments=True)
        except ValueError:  # a drawing, not a command
            continue
        if len(words) == 1 and (assigned := re.match(r"\w+=(perfcast .*)", words[0])):
            words = shlex.split(assigned[1])
        start = 0
        for end in [*(place for place, word in enumerate(words) if word in OPERATORS), len(words)]:
            command = [word for word in words[start:end] if not re.match(r"[A-Z_]+=", word)]
            commands += [tuple(command)] if command else []
            start = end + 1
    return commands


def list_commands(program: str, *, inline: bool) -> list[tuple[str, tuple[str, ...]]]:
    """Return (page, words after the program) of every command, in blocks or between backticks."""
    commands = set()
    for page, text in TEXT.items():
        blocks = [block for language, block in FENCE.findall(text) if language in SHELLS]
        texts = re.findall(r"`([^`\n]+)`", FENCE.sub("", text)) if inline else blocks
        commands |= {(page, words[1:]) for block in texts for words in read_commands(block) if words[0] == program}
    return sorted(commands)


MAKEFILE = (PROJECT / "Makefile").read_text()


def name_command(words: tuple[str, ...]) -> str:
    """Return the command, with its second word for `measure` and `pipeline`; empty for the program alone."""
    count = 2 if words and words[0] in FAMILIES else 1
    return " ".join(word for word in words[:count] if not word.startswith("-"))


KNOWN = {"", *FAMILIES, *(name.replace("_", "-") for name in COMMANDS)}
KNOWN |= {f"{family} {name.replace('_', '-')}" for family in FAMILIES for name in MEMBERS[family]}


@pytest.mark.parametrize(("page", "words"), list_commands("perfcast", inline=False))
def test_perfcast_command_lines_parse(page, words, monkeypatch, capsys):
    def load_without_running(package, name):
        return SimpleNamespace(add_arguments=load_command(package, name).add_arguments, run=lambda options: 0)

    for module in (perfcast.cli.main, command_parser):
        monkeypatch.setattr(module, "load_command", load_without_running)
    try:
        code = main(words)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 0, f"{page}: perfcast {shlex.join(words)}: {capsys.readouterr().err}"


@pytest.mark.parametrize(("page", "words"), list_commands("perfcast", inline=True))
def test_perfcast_commands_in_the_text_exist(page, words, capsys):
    command = name_command(words)
    if any(word.isupper() for word in command.split()):  # a placeholder, as in `perfcast COMMAND --help`
        return
    assert command in KNOWN, f"{page}: perfcast {shlex.join(words)}"
    positional = itertools.takewhile(lambda word: not word.startswith("-"), words)
    with pytest.raises(SystemExit):
        main([*positional, "--help"])
    accepted = set(re.findall(r"--?[a-z][a-z-]*", capsys.readouterr().out))
    typed = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert typed <= accepted, f"{page}: perfcast {shlex.join(words)}"


def both(program):
    return [*list_commands(program, inline=False), *list_commands(program, inline=True)]


def test_make_targets_exist():
    assert {("README.md", ("run",)), ("README.md", ("test",))} <= set(list_commands("make", inline=False))
    for page, words in both("make"):
        for word in words:
            variable = re.match(r"(\w+)=", word)
            pattern = rf"^{variable[1]} *[?:]?=" if variable else rf"^(?:[\w-]+ )*{re.escape(word)}(?: [\w-]+)*:"
            assert re.search(pattern, MAKEFILE, re.MULTILINE), f"{page}: make {shlex.join(words)}"


def read_settings(words: tuple[str, ...], *flags: str) -> dict[str, object]:
    """Return the KEY=VALUE pairs after some flags, without placeholders."""
    settings, active = {}, False
    for word in words:
        if word.startswith("-"):
            active = word in flags
        elif active and "..." not in word and (pair := re.fullmatch(r"(\w+)=(.+)", word, re.DOTALL)):
            settings[pair[1]] = yaml.safe_load(pair[2])
    return settings


@pytest.mark.parametrize(("page", "words"), both("snakemake"))
def test_snakemake_command_lines_name_valid_experiments(page, words):
    params = read_yaml(PROJECT / "params.yaml")
    for flag, value in itertools.pairwise(words):
        if flag in {"--configfile", "--profile"}:
            assert (PROJECT / value).exists(), f"{page}: {value}"
        if flag == "--configfile":
            params |= read_yaml(PROJECT / value)
    settings = params | read_settings(words, "--config")
    settings.pop("results", None)
    validate(settings, PROJECT / "conf")


@pytest.mark.parametrize(("page", "words"), both("dvc"))
def test_dvc_command_lines_set_valid_parameters(page, words):
    settings = read_settings(words, "-S", "--set-param")
    validate(read_yaml(PROJECT / "params.yaml") | settings, PROJECT / "conf")


def test_paths_exist_and_sources_and_splits_of_the_experiment_are_documented():
    named = r"`((?:src|tests|conf|data|workflow|benchmarks|examples)/[^`<*{ ]+)`"
    paths = {(page, path) for page, text in TEXT.items() for path in re.findall(named, text)}
    folders = (PROJECT, PROJECT / "src" / "perfcast")
    assert [each for each in sorted(paths) if not any((folder / each[1]).exists() for folder in folders)] == []
    sources = read_yaml(PROJECT / "params.yaml")["sources"]
    for name in (*sources, "random", "unseen_cpu", "forward_2023", "forward_2024"):
        assert any(f"`{name}`" in text for text in TEXT.values()), name


EXECUTED = {"predict", "rank", "what-if", "similar", "compare", "size", "match", "factors", "sources"}
"""Commands of perfcast that are executed with all their documented arguments."""

PARSED = {"serve", "mcp", "measure", "doctor", "pipeline", "update", "champion", "ledger", "task"}
"""Commands of perfcast that need a full run, a network or minutes, or that never end."""

OTHERS = {
    "make",
    "snakemake",
    "dvc",
    "mlflow",
    "pip",
    "pre-commit",
    "python",
    "docker",
    "kubectl",
    "sbatch",
    "apt-get",
    "source",
    "cd",
    "export",
    "git",
    "find",
}
"""First words of the other commands: tools that other tests run, and the shell's own."""

ADDRESS = "http://127.0.0.1:8000"
PYTHON_PARSED = ("mlflow", "task")
"""Modules of code that needs a finished run."""


def add_instances(folder: Path, listed: Path) -> None:
    """Copy the generated champion, with generated facts of the instances that the pages name."""
    pattern = r"[a-z]\d\w*\.\w+large|n2-standard-32|Standard_D8s_v5"
    names = {name for text in TEXT.values() for name in re.findall(pattern, text)}
    lines = ["instance_type,vcpus,cpu_model,family,threads_per_core,other_families,memory_gb"]
    lines += [f"{name},160,xeon gold 6148,,2,Milan,512" for name in sorted(names)]
    (listed / "cloud_instances.csv").write_text("\n".join(lines))
    shutil.copytree(project().folder, folder)
    measured = project().champion.reference_data.measured
    raw = {**project().raw, "cloud_instances": listed}
    facts = project().champion.rules.typical_values.read_entity_facts(raw, measured.frame["cpu_model"].unique())
    ReferenceData(measured, facts).save(folder / "reference_data")
    record_digests(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a champion of generated results, as the pages have it."""
    place = tmp_path_factory.mktemp("project")
    (place / "results" / "champion").mkdir(parents=True)
    add_instances(place / "results" / "champion" / "spec_cpu2017", tmp_path_factory.mktemp("listed"))
    for folder in (project().results, deployment_project.results(), training_run_project.results()):
        for entry in (folder / "champion").iterdir():
            if entry.name != "spec_cpu2017":
                (place / "results" / "champion" / entry.name).symlink_to(entry)
        for entry in folder.iterdir():
            if entry.name not in ("champion", "raw"):
                (place / "results" / entry.name).symlink_to(entry)
    (place / "results" / "cpu2026").symlink_to(bridged_results())
    (place / "results" / "power").symlink_to(power_folder().parents[1])
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
