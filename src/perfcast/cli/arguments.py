"""Arguments that several commands share; a number out of range is a mistake in one line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfcast.utils.packaged_project import default_project

LARGEST_SEED = 2**32 - 1
"""The largest seed of numpy."""


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        plain = text.strip().removeprefix("+").removeprefix("-")
        value = int(text) if plain.isascii() and plain.isdigit() and len(plain) <= 20 else None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}, but it is {text[:60]!r}")
        return value

    return read


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a reader of numbers from `low` to `high`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be a number from {low:g} to {high:g}, but it is {text[:60]!r}")
        return value

    return read


seed = whole(0, LARGEST_SEED)


def share(text: str) -> float:
    """Return a number between 0 and 1."""
    try:
        value = number(1e-6, 1 - 1e-6)(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, but it is {text[:60]}; 0.9 means 90 %") from None
    return value


SHARED: dict[str, dict[str, Any]] = {
    "--seed": {"type": seed, "default": 0, "metavar": "N", "help": "seed of everything random"},
    "--out": {"type": Path, "required": True, "metavar": "PATH", "help": "file or folder to write"},
    "--results": {"type": Path, "default": Path("results"), "metavar": "FOLDER", "help": "folder of a run"},
    "--task": {
        "action": "append",
        "default": [],
        "metavar": "NAME",
        "help": "this task only; may be repeated, or NAME,NAME",
    },
    "--explain": {"action": "store_true", "help": "print nearest machines, drivers, all values and the basis as well"},
    "--strict": {"action": "store_true", "help": "stop at the first machine that cannot be used"},
    "--no-assume": {"action": "store_true", "help": "leave missing values unknown"},
    "--facts": {"type": Path, "metavar": "FILE", "help": "your table of facts"},
    "--project": {"type": Path, "default": Path(), "metavar": "FOLDER", "help": "folder of params.yaml and conf/"},
}
"""Arguments that several commands have, by name."""


def add_shared(parser: argparse.ArgumentParser, *names: str, **changed: str) -> None:
    """Declare arguments of SHARED; `changed` gives another help to one of them, by its name without dashes."""
    for name in names:
        help_text = changed.get(name.lstrip("-"), SHARED[name]["help"])
        parser.add_argument(name, **{**SHARED[name], "help": help_text})


def add_project(parser: argparse.ArgumentParser) -> None:
    """Declare the project, by default that of the working directory, or else the one that is packaged."""
    add_shared(parser, "--project")
    parser.set_defaults(project=default_project(Path()))


def chosen(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return options as keywords of the function that a command calls."""
    return {name: getattr(options, name) for name in names}


def parse_experiment(experiment: str | None, project: Path) -> dict[str, Any]:
    """Return the experiment of --experiment, or that of params.yaml. Raises: UserError when it is no JSON object."""
    from perfcast.config.conf_files import require_mapping
    from perfcast.config.experiment_params import read_params
    from perfcast.utils.io import read_json_text

    if experiment is None:
        return read_params(project).model_dump()
    return dict(require_mapping(read_json_text(experiment, "--experiment"), "--experiment"))
