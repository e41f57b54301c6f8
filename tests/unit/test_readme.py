"""Commands, paths and names in README.md and docs: every command line parses, every path exists."""

from __future__ import annotations

import itertools
import re
import shlex
from types import SimpleNamespace

import pytest
import yaml
from documented_commands import PROJECT, TEXT, list_commands

from perfcast import plugins
from perfcast.cli.command_parser import FAMILIES, MEMBERS
from perfcast.cli.main import COMMANDS, main
from perfcast.config.conf_files import read_yaml
from perfcast.config.experiment_params import validate

MAKEFILE = (PROJECT / "Makefile").read_text()


def name_command(words: tuple[str, ...]) -> str:
    """Return the command, with its second word for `measure` and `pipeline`; empty for the program alone."""
    count = 2 if words and words[0] in FAMILIES else 1
    return " ".join(word for word in words[:count] if not word.startswith("-"))


KNOWN = {"", *FAMILIES, *(name.replace("_", "-") for name in COMMANDS)}
KNOWN |= {f"{family} {name.replace('_', '-')}" for family in FAMILIES for name in MEMBERS[family]}


@pytest.mark.parametrize(("page", "words"), list_commands("perfcast", inline=False))
def test_perfcast_command_lines_parse(page, words, monkeypatch, capsys):
    options = []
    monkeypatch.setattr(plugins, "load", wrap_load(plugins.load, options.append))
    try:
        code = main(words)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 0, f"{page}: perfcast {shlex.join(words)}: {capsys.readouterr().err}"


def wrap_load(load, run):
    """Return a loader of commands whose `run` only records the parsed options."""

    def load_command(package, name):
        module = load(package, name)
        return SimpleNamespace(add_arguments=module.add_arguments, run=lambda options: run(options) or 0)

    return load_command


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


@pytest.mark.parametrize(("page", "words"), [*list_commands("make", inline=False), *list_commands("make", inline=True)])
def test_make_targets_exist(page, words):
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


@pytest.mark.parametrize(
    ("page", "words"), [*list_commands("snakemake", inline=False), *list_commands("snakemake", inline=True)]
)
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


@pytest.mark.parametrize(("page", "words"), [*list_commands("dvc", inline=False), *list_commands("dvc", inline=True)])
def test_dvc_command_lines_set_valid_parameters(page, words):
    settings = read_settings(words, "-S", "--set-param")
    validate(read_yaml(PROJECT / "params.yaml") | settings, PROJECT / "conf")


@pytest.mark.parametrize(
    ("page", "path"),
    sorted(
        {
            (page, path)
            for page, text in TEXT.items()
            for path in re.findall(r"`((?:src|tests|conf|data|workflow|benchmarks|fuzz|examples)/[^`<*{ ]+)`", text)
        }
    ),
)
def test_paths_exist(page, path):
    assert any((folder / path).exists() for folder in (PROJECT, PROJECT / "src" / "perfcast"))


def test_sources_and_splits_of_the_experiment_are_documented():
    params = read_yaml(PROJECT / "params.yaml")
    for name in (*params["sources"], "random", "unseen_cpu", "forward_2023", "forward_2024"):
        assert any(f"`{name}`" in text for text in TEXT.values()), name


def test_readme_starts_with_the_commands_of_a_newcomer():
    assert ("README.md", ("run",)) in list_commands("make", inline=False)
    assert ("README.md", ("test",)) in list_commands("make", inline=False)
