"""Help of every command with defaults and working examples; hints for mistyped commands and options."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

import perfcast.cli.main
from perfcast.cli import command_parser
from perfcast.cli.asking import FLAGS
from perfcast.cli.command_parser import (
    COMMANDS,
    FAMILIES,
    MEMBERS,
    TypedCommand,
    build_parser,
    find_command,
    load_command,
    read_examples,
)
from perfcast.cli.main import main
from perfcast.inference.rules.description_rules import find_rules

PROJECT = Path(__file__).parents[3]
ALL = [
    *(TypedCommand("cli", name) for name in COMMANDS),
    *(TypedCommand(f"cli.{family}", name) for family in FAMILIES for name in MEMBERS[family]),
]
WORDS = [command.prog.split()[1:] for command in ALL]


def show_help(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", [[], *([family] for family in FAMILIES), *WORDS], ids=" ".join)
def test_help_fits_80_columns_and_has_examples_arguments_and_defaults(words, capsys, monkeypatch):
    shown = show_help(words, capsys, monkeypatch)
    assert shown.startswith(f"usage: {' '.join(['perfcast', *words])} ")
    assert "examples" in shown and "[]" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    if words in WORDS:
        for action in build_parser(ALL[WORDS.index(words)])._actions:
            assert action.help, action.dest
            plain = isinstance(action.default, (int, float, str, Path)) and not isinstance(action.default, bool)
            if plain and action.default != argparse.SUPPRESS:
                assert f"(default: {action.default})" in " ".join(shown.split())


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.prog)
def test_examples_parse(command, monkeypatch):
    parsed = []

    def load_without_running(package, name):
        module = load_command(package, name)
        run = lambda options: parsed.append(1) or 0  # noqa: E731
        return SimpleNamespace(__doc__=module.__doc__, add_arguments=module.add_arguments, run=run)

    for module in (perfcast.cli.main, command_parser):
        monkeypatch.setattr(module, "load_command", load_without_running)
    monkeypatch.chdir(PROJECT)
    text = "\n".join(read_examples(command.package, command.module)).replace("\\\n", " ")
    lines = [line.removeprefix('eval "$(').removesuffix(')"').partition(" > ~")[0] for line in text.splitlines()]
    assert 1 <= len(lines) <= 2
    for line in lines:
        assert line.startswith(command.prog)
        assert main(shlex.split(line)[1:]) == 0
    assert len(parsed) == len(lines)


def test_help_lists_every_command_once_in_a_group(capsys, monkeypatch):
    shown = show_help([], capsys, monkeypatch)
    ask, run = shown.index("Ask:"), shown.index("Run:")
    assert ask < shown.index("\n  predict ") < run < shown.index("\n  doctor ") < shown.index("Plumbing:")
    for name in (*COMMANDS, *FAMILIES):
        assert shown.count(f"\n  {name.replace('_', '-')} ") == 1
    assert "standardize" not in shown
    assert "\n  standardize " in show_help(["pipeline"], capsys, monkeypatch)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("predct", "perfcast: a command must exist, but there is no 'predct'; did you mean `perfcast predict`?"),
        ("fake demo", "did you mean `perfcast pipeline fake`?"),
        ("measure gem", "did you mean `perfcast measure gemm`?"),
        ("pipeline", "perfcast pipeline: all required arguments must be given, but COMMAND is missing"),
        ("predict --chps 2", "no --chps; did you mean --chips? see perfcast predict --help"),
        ("predict --clock 2", "no --clock; another field of a machine is given as --set NAME=VALUE"),
        ("serve --port ٣", "perfcast serve: --port must be a whole number from 0 to 65535, but it is '٣'"),
        ("serve --port 65536", "--port must be a whole number from 0 to 65535, but it is '65536'"),
        ("measure gemm --budget-minutes nan", "--budget-minutes must be a number from"),
        ("predict --level 2", "--level must be between 0 and 1, but it is 2; 0.9 means 90 %"),
        ("predict --json --csv", "--csv and --json must not be given together"),
        ("doctor extra", "no place for extra"),
        ("sources extra", "perfcast sources: action must be one of pack, but it is 'extra'"),
    ],
)
def test_mistyped_words_get_one_line_with_a_hint(typed, message, capsys):
    assert main(typed.split()) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_flags_of_machines_are_fields_of_their_datasets():
    for title, flags in FLAGS.items():
        for dataset in title.partition("(")[2].rstrip(")").split(", "):
            names = {name for field in find_rules(dataset).names.fields for name in (field.name, *field.aliases)}
            for name, *synonyms in flags:
                # a column needs no field
                assert name in names | {"chips"} and set(synonyms) <= names | {"operating-system"}, name


def test_synonyms_of_files_and_requests_are_accepted():
    words = ["predict", "--cpu", "EPYC 9654", "--sockets", "2", "--operating-system", "SLES 15"]
    options = build_parser(find_command(words)).parse_args(words[1:])
    assert (options.processor, options.chips, options.os) == ("EPYC 9654", "2", "SLES 15")
