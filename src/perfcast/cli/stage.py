"""Commands whose arguments are those of a function: its signature and its docstring declare them."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

HELP = {
    "dataset": "name of a file in conf/dataset",
    "split": "name of a split, such as random",
    "table": "table with features",
    "standard": "standard table, without features",
    "folds": "file of the split",
    "runs": "folder of the dataset's runs",
    "raw": "folder of the ingested sources",
    "splits": "names of splits",
    "predictors": "names of predictors",
    "preset": "training budget",
    "backtest_windows": "most backtests of one fold",
    "level": "level of the intervals",
    "seed": "seed of everything random",
    "results": "folder of a run",
    "out": "file or folder to write",
    "project": "folder of params.yaml and conf/",
}
"""Help of arguments that several commands have, by name."""


class Stage:
    """A function as a command.

    Parameters before the `*` are words, those behind it options. The help of a parameter is its line under `Args:` in
    the docstring, such as `multirun, -m: train once for each value`, or else that of HELP.
    """

    def __init__(self, function: Callable[..., int | None]) -> None:
        self.function = function
        self.parameters = inspect.signature(function).parameters.values()
        text, _, sections = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:\n")
        lines, _, examples = sections.partition("\n\nExamples:\n")
        self.help: dict[str, str] = {}
        self.short: dict[str, list[str]] = {}
        for line in lines.splitlines():
            names, _, sentence = line.strip().partition(": ")
            name, *short = names.split(", ")
            self.help[name] = sentence
            self.short[name] = short
        self.__doc__ = f"{text}\n\nExamples:\n{examples}" if examples else text

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        hints = get_type_hints(self.function, include_extras=True)
        for parameter in self.parameters:
            options = _options(hints[parameter.name], parameter.default)
            options["help"] = self.help.get(parameter.name) or HELP[parameter.name]
            if parameter.kind is parameter.KEYWORD_ONLY:
                flags = [_flag(parameter.name), *self.short.get(parameter.name, [])]
                parser.add_argument(*flags, required=parameter.default is parameter.empty, **options)
            else:
                options.pop("metavar", None)  # its name says more
                parser.add_argument(parameter.name, **options)

    def run(self, options: argparse.Namespace) -> int:
        """Call the function and return its exit code, 0 for none."""
        words = []
        flags = {}
        for parameter in self.parameters:
            value = getattr(options, parameter.name)
            if parameter.kind is parameter.KEYWORD_ONLY:
                flags[parameter.name] = value
            else:
                words.append(value)
        return self.function(*words, **flags) or 0

    def words(self, values: Mapping[str, Any]) -> list[str]:
        """Return the words behind the command that give it its values by name; what is empty or None is left out."""
        words: list[str] = []
        for parameter in self.parameters:
            value = values.get(parameter.name)
            texts = [str(value)] if isinstance(value, str | int | float | Path) else list(map(str, value or ()))
            if texts and parameter.kind is parameter.KEYWORD_ONLY:
                words.append(_flag(parameter.name))
            words += texts
        return words


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _options(hint: Any, default: Any) -> dict[str, Any]:
    """Return what argparse knows of an argument by the type of its parameter."""
    if hint is bool:
        return {"action": "store_true"}
    options: dict[str, Any] = {} if default is inspect.Parameter.empty else {"default": default}
    if NoneType in get_args(hint):
        hint = get_args(hint)[0]
    if get_origin(hint) is Sequence:
        hint = get_args(hint)[0]
        options["nargs"] = "+" if default is inspect.Parameter.empty else "*"
        # an option may be repeated, or have several values
        options["action"] = "extend"
        options["default"] = []
    if get_origin(hint) is Literal:
        return {**options, "choices": get_args(hint)}
    if get_origin(hint) is Annotated:
        return {**options, "type": get_args(hint)[1], "metavar": "N"}
    if hint is Path:
        return {**options, "type": Path, "metavar": "PATH"}
    return options
