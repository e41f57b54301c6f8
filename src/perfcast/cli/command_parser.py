"""Parser of the command line: commands by group, help with defaults and examples, and hints for mistyped words.

The docstring of a command's module holds its summary and its examples. Only the modules of the typed command, or of the
commands that a list shows, are imported.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from perfcast import __version__, plugins
from perfcast.domain import domains
from perfcast.utils.errors import UserError

_ASK = ("predict", "rank", "what_if", "similar", "compare")
FAMILIES = {
    "champion": "Write a champion as one file, for another machine.",
    "facts": "Add, list and check dated facts of CPU models.",
    "measure": "Measure this machine: matrix products or a suite of kernels.",
    "pipeline": "Run one stage of the pipeline, as the rules of Snakemake do.",
}
"""Commands that consist of commands, with their summaries."""
_RUN = ("ui", "doctor", "sources", "tune", "serve", "summary", "reproduced", "config", "completion", "leaderboard")
_MEMBERS = {
    "champion": ("export",),
    "pipeline": (
        *("available", "champion", "described", "evaluate", "fake", "features", "forget", "headline", "in_domain"),
        *("ingest", "leakage", "metrics", "plots", "record", "report", "split", "standardize", "times", "train"),
    ),
}
_OF_DOMAINS = [tuple(command.split()) for domain in domains() for command in domain.commands]
COMMANDS = tuple(sorted({*_ASK, *_RUN, *(words[0] for words in _OF_DOMAINS if len(words) == 1)}))
"""Commands of users."""
MEMBERS = {
    family: (*_MEMBERS.get(family, ()), *sorted(words[1] for words in _OF_DOMAINS if words[0] == family and words[1:]))
    for family in FAMILIES
}
"""Family -> its commands."""
STAGES = MEMBERS["pipeline"]
"""Stages of the pipeline."""
_GROUPS = {
    "Ask": _ASK,
    "Run": (*_RUN, *(family for family in FAMILIES if family != "pipeline" and MEMBERS[family])),
    "Of one domain": tuple(name for name in COMMANDS if name not in (*_ASK, *_RUN)),
    "Plumbing": ("pipeline",),
}
_NAME_WIDTH = 11
"""Letters of the longest name of a command."""
_ARGUMENT = re.compile(r"argument (?P<name>[^:]+): (?P<rule>.*)", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '?(?P<typed>.*?)'? \(choose from (?P<known>.*)\)", re.DOTALL)


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of examples, and shows the default of every option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help or ""
        if action.required and action.option_strings:
            return f"{text} (required)".strip()
        hidden = isinstance(action.default, bool) or action.default in (None, [], argparse.SUPPRESS)
        if hidden or "(default" in text:
            return text
        return super()._get_help_string(action)


class CommandParser(argparse.ArgumentParser):
    """Raises a UserError for a mistake, so that it is one line without the usage before it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"formatter_class": _HelpFormatter, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Raise a UserError: the argument as the user typed it, the rule and the remedy."""
        requirement, fact, hint = _reword(message)
        raise UserError(requirement, fact, f"{hint}see {self.prog} --help")

    def refuse_unknown(self, words: Sequence[str]) -> NoReturn:
        """Raise a UserError on words that the command does not have, with the most similar option."""
        option = next((word for word in words if word.startswith("-")), "").partition("=")[0]
        hint = _did_you_mean(option, self._option_string_actions)
        if option.startswith("--") and not hint and "--set" in self._option_string_actions:
            hint = "another field of a machine is given as --set NAME=VALUE; "
        fact = f"there is no {option}" if option else f"there is no place for {words[0]}"
        raise UserError("arguments must be those of the command", fact, f"{hint}see {self.prog} --help")


@dataclass(frozen=True)
class TypedCommand:
    """The command that was typed: its package and module, and the words before its arguments."""

    package: str
    module: str

    @property
    def prog(self) -> str:
        """The words of the command: perfcast pipeline in-domain."""
        family = self.package.removeprefix("cli").lstrip(".")
        return " ".join(word for word in ("perfcast", family, _word(self.module)) if word)


def find_command(words: Sequence[str]) -> TypedCommand:
    """Return the command of typed words; its module is empty where they name none."""
    chosen, member = [*(word.replace("-", "_") for word in words if not word.startswith("-")), "", ""][:2]
    if chosen in FAMILIES:
        return TypedCommand(f"cli.{chosen}", member if member in MEMBERS[chosen] else "")
    return TypedCommand("cli", chosen if chosen in COMMANDS else "")


def build_parser(command: TypedCommand) -> tuple[CommandParser, CommandParser]:
    """Return the parser of all commands, and that of `command`, whose module alone is imported."""
    parser = CommandParser(
        prog="perfcast",
        usage="perfcast COMMAND [ARGUMENTS]",
        description=f"Predict benchmark results of computers.\n\n{'' if command.module else _list_groups()}",
        epilog=_format_examples(["perfcast predict --processor 'AMD EPYC 9755' --chips 2", "perfcast doctor"]),
    )
    parser.add_argument("--version", action="version", version=f"perfcast {__version__}")
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="perfcast", help=argparse.SUPPRESS
    )
    chosen = parser
    for name in COMMANDS:
        added = _add_command(subparsers, "cli", name, loaded=command == TypedCommand("cli", name))
        chosen = added if command == TypedCommand("cli", name) else chosen
    for family, summary in FAMILIES.items():
        added = subparsers.add_parser(
            family,
            usage=f"perfcast {family} COMMAND [ARGUMENTS]",
            description=_describe_family(family, summary) if command == TypedCommand(f"cli.{family}", "") else "",
            epilog=f"`perfcast {family} COMMAND --help` shows the options and examples of a command.",
        )
        members = added.add_subparsers(
            dest="member", metavar="COMMAND", required=True, prog=f"perfcast {family}", help=argparse.SUPPRESS
        )
        chosen = added if command == TypedCommand(f"cli.{family}", "") else chosen
        for name in MEMBERS[family]:
            typed = TypedCommand(f"cli.{family}", name)
            leaf = _add_command(members, typed.package, name, loaded=command == typed)
            chosen = leaf if command == typed else chosen
    return parser, chosen


def check_command(words: Sequence[str]) -> None:
    """Raise a UserError, with the most similar command, where words begin with none."""
    if not words or words[0].startswith("-") or words[0].replace("-", "_") in COMMANDS:
        return
    members = {_word(name): f"{family} {_word(name)}" for family in FAMILIES for name in MEMBERS[family]}
    paths, typed, prog = members | {_word(name): _word(name) for name in (*COMMANDS, *FAMILIES)}, words[0], "perfcast"
    if typed in FAMILIES:
        if len(words) == 1 or words[1].startswith("-") or words[1].replace("-", "_") in MEMBERS[typed]:
            return
        paths = {name: path for name, path in members.items() if path.startswith(f"{typed} ")}
        typed, prog = words[1], f"perfcast {typed}"
    near = get_close_matches(typed, paths, n=1)
    hint = f"did you mean `perfcast {paths[near[0]]}`? " if near else ""
    raise UserError("a command must exist", f"there is no {typed!r}", f"{hint}see {prog} --help")


def _add_command(
    commands: argparse._SubParsersAction[CommandParser], package: str, name: str, *, loaded: bool
) -> CommandParser:
    """Add one command; its module is imported, and its options are added, where it is `loaded`."""
    if not loaded:
        return commands.add_parser(_word(name), add_help=False)
    text, examples = _read_docstring(package, name)
    parser = commands.add_parser(_word(name), description=text, epilog=_format_examples(examples))
    plugins.load(package, name).add_arguments(parser)
    return parser


def read_examples(package: str, name: str) -> list[str]:
    """Return the examples in the docstring of a command."""
    return _read_docstring(package, name)[1]


def _read_docstring(package: str, name: str) -> tuple[str, list[str]]:
    """Return the text and the examples in the docstring of a command's module."""
    text, _, examples = (inspect.getdoc(plugins.load(package, name)) or "").partition("\n\nExamples:\n")
    return text, [line.removeprefix("    ") for line in examples.splitlines()]


def _format_examples(lines: Iterable[str]) -> str:
    return "\n  ".join(["examples:", *lines])


def _list_groups() -> str:
    """Return the commands by group, one line each."""
    return "\n\n".join(f"{title}:\n{_list_commands('cli', names)}" for title, names in _GROUPS.items() if names)


def _describe_family(family: str, summary: str) -> str:
    return f"{summary}\n\n{_list_commands(f'cli.{family}', MEMBERS[family])}"


def _list_commands(package: str, names: Iterable[str]) -> str:
    summaries = [
        (name, FAMILIES[name] if package == "cli" and name in FAMILIES else _read_docstring(package, name)[0])
        for name in names
    ]
    lines = [f"  {_word(name):{_NAME_WIDTH}}  {text.partition(chr(10))[0]}" for name, text in summaries]
    return "\n".join(lines)


def _word(name: str) -> str:
    """Return a module's name as a user types it."""
    return name.replace("_", "-")


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f"did you mean {near[0]}? " if near else ""


def _reword(message: str) -> tuple[str, str, str]:
    """Return requirement, fact and hint of a message of argparse."""
    match = _ARGUMENT.fullmatch(message)
    if not match:
        _, required, names = message.partition("arguments are required: ")
        return ("all required arguments must be given", f"{names} is missing", "") if required else (message, "", "")
    name, rule = match["name"].split("/")[0], match["rule"]
    if choice := _CHOICE.fullmatch(rule):
        known = choice["known"].replace("'", "").split(", ")
        return (
            f"{name} must be one of {', '.join(known)}",
            f"it is {choice['typed']!r}",
            _did_you_mean(choice["typed"], known),
        )
    if invalid := re.fullmatch(r"invalid (\w+) value: (.*)", rule):
        kind = {"int": "a whole number", "float": "a number"}.get(invalid[1], f"a {invalid[1]}")
        return f"{name} must be {kind}", f"it is {invalid[2]}", ""
    if rule.startswith("not allowed with argument "):
        return f"{name} and {rule.rpartition(' ')[2]} must not be given together", "both are", ""
    if rule.startswith("expected "):
        return f"{name} must have {rule.removeprefix('expected ')}", "it has another number of values", ""
    requirement, but, fact = rule.partition(", but ")
    return (f"{name} {requirement}", fact, "") if but else (name, rule, "")
