"""Parser of the command line: commands by group, help with defaults and examples, and hints for mistyped words.

The docstring of a command's module holds its summary and its examples. Only the modules of the typed command, or of the
commands that a list shows, are imported.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from perfcast import __version__, plugins
from perfcast.cli import new, pipeline
from perfcast.domain import domains
from perfcast.utils.errors import UserError

_ASK = ("predict", "rank", "what_if", "similar", "compare", "size", "match", "factors")
_RUN = ("doctor", "sources", "update", "serve", "mcp", "summary", "config")
STAGES = tuple(pipeline.STAGES)
"""Stages of the pipeline."""
_OF_DOMAINS = sorted(tuple(command.split()) for domain in domains() for command in domain.commands)
COMMANDS = tuple(sorted({*_ASK, *_RUN, *(words[0] for words in _OF_DOMAINS if len(words) == 1)}))
"""Commands of users."""
MEMBERS: dict[str, tuple[str, ...]] = {"new": tuple(new.KINDS), "pipeline": STAGES}
"""Family, a command that consists of commands -> these."""
MEMBERS["champion"] = ("export",)
MEMBERS["task"] = ("export", "score")
for _family, *_member in _OF_DOMAINS:
    if _member:
        MEMBERS[_family] = (*MEMBERS.get(_family, ()), *_member)
FAMILIES = tuple(sorted(MEMBERS))
_GROUPS = {
    "Ask": _ASK,
    "Run": (*_RUN, *(family for family in FAMILIES if family != "pipeline")),
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

    @property
    def count(self) -> int:
        """The number of words of the command after `perfcast`."""
        return len(self.prog.split()) - 1


def find_command(words: Sequence[str]) -> TypedCommand:
    """Return the command that words begin with; its module is empty where they name none."""
    chosen, member = [*(word.replace("-", "_") for word in words[:2]), "", ""][:2]
    if chosen in FAMILIES:
        return TypedCommand(f"cli.{chosen}", member if member in MEMBERS[chosen] else "")
    return TypedCommand("cli", chosen if chosen in COMMANDS else "")


def load_command(package: str, name: str) -> Any:
    """Return what has `add_arguments` and `run`: a module, a stage of the pipeline or a kind of new files."""
    stages = {"cli.new": new.KINDS, "cli.pipeline": pipeline.STAGES}
    return stages[package][name] if package in stages else plugins.load(package, name)


def build_parser(command: TypedCommand) -> CommandParser:
    """Return the parser of the words after a command, whose module alone is imported, or of the name of one."""
    if command.module:
        text, examples = _read_docstring(command.package, command.module)
        parser = CommandParser(prog=command.prog, description=text, epilog=_format_examples(examples))
        try:
            load_command(command.package, command.module).add_arguments(parser)
        except argparse.ArgumentError as error:
            requirement = f"flags of domains must not be options of {command.prog}"
            raise UserError(requirement, str(error), "rename the flag in its Domain") from None
        return parser
    family = command.package.removeprefix("cli").lstrip(".")
    if family:
        description = f"{_summarize('cli', family)}\n\n{_list_commands(command.package, MEMBERS[family])}"
        epilog = f"`{command.prog} COMMAND --help` shows the options and examples of a command."
    else:
        groups = (f"{title}:\n{_list_commands('cli', names)}" for title, names in _GROUPS.items() if names)
        description = "\n\n".join(["Predict benchmark results of computers.", *groups])
        epilog = _format_examples(["perfcast predict --processor 'AMD EPYC 9755' --chips 2", "perfcast doctor"])
    usage = f"{command.prog} COMMAND [ARGUMENTS]"
    parser = CommandParser(prog=command.prog, usage=usage, description=description, epilog=epilog)
    if not family:
        parser.add_argument("--version", action="version", version=f"perfcast {__version__}")
    names = MEMBERS[family] if family else (*COMMANDS, *FAMILIES)
    parser.add_argument("command", choices=[*map(_word, names)], metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def check_command(words: Sequence[str]) -> None:
    """Raise a UserError, with the most similar command, where words begin with none."""
    command = find_command(words)
    typed = next(iter(words[command.count :]), "-")
    if command.module or typed.startswith("-"):
        return
    paths = {_word(name): f"{family} {_word(name)}" for family in FAMILIES for name in MEMBERS[family]}
    paths |= {_word(name): _word(name) for name in (*COMMANDS, *FAMILIES)}
    if command.count:
        family = words[0]
        paths = {_word(name): f"{family} {_word(name)}" for name in MEMBERS[family]}
    near = get_close_matches(typed, paths, n=1)
    hint = f"did you mean `perfcast {paths[near[0]]}`? " if near else ""
    raise UserError("a command must exist", f"there is no {typed!r}", f"{hint}see {command.prog} --help")


def read_examples(package: str, name: str) -> list[str]:
    """Return the examples in the docstring of a command."""
    return _read_docstring(package, name)[1]


def _read_docstring(package: str, name: str) -> tuple[str, list[str]]:
    """Return the text and the examples in the docstring of a command's module."""
    text, _, examples = (inspect.getdoc(load_command(package, name)) or "").partition("\n\nExamples:\n")
    return text, [line.removeprefix("    ") for line in examples.splitlines()]


def _format_examples(lines: Iterable[str]) -> str:
    return "\n  ".join(["examples:", *lines])


def _list_commands(package: str, names: Iterable[str]) -> str:
    return "\n".join(f"  {_word(name):{_NAME_WIDTH}}  {_summarize(package, name)}" for name in names)


def _summarize(package: str, name: str) -> str:
    """Return the summary of a command; that of a family is the docstring of the package of its commands."""
    if name in ("new", "pipeline"):
        return inspect.getdoc(sys.modules[f"perfcast.cli.{name}"]) or ""
    if package == "cli" and name in FAMILIES:
        return inspect.getdoc(sys.modules[str(plugins.load(f"cli.{name}", MEMBERS[name][0]).__package__)]) or ""
    return _read_docstring(package, name)[0].partition("\n")[0]


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
    name = match["name"].split("/")[0]
    rule = match["rule"]
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
