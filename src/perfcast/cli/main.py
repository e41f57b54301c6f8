"""`perfcast COMMAND` and `perfcast pipeline STAGE`: one module per command, imported only when it runs."""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from perfcast import __version__
from perfcast.cli._arguments import EXAMPLES
from perfcast.utils import plugins
from perfcast.utils.errors import UserError, printable
from perfcast.utils.extras import explain_missing_module
from perfcast.utils.os_errors import explain_os_error

PIPELINE = "pipeline"
COMMANDS = plugins.names("cli")
"""Commands of users."""
STAGES = plugins.names(f"cli.{PIPELINE}")
"""Stages of the pipeline, which the rules of Snakemake call."""


class _Parser(argparse.ArgumentParser):
    """Prints a mistake in one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 2 a mistake of the user in one line, 130 interrupted."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    words = [word.replace("-", "_") for word in typed if not word.startswith("-")]
    chosen, stage = ([*words, "", ""])[:2]
    parser = _Parser(prog="perfcast", description="Predict benchmark results of computers.")
    parser.add_argument("--version", action="version", version=f"perfcast {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    for name in COMMANDS:
        if chosen == name or chosen not in COMMANDS:
            _add_command(commands, "cli", name, loaded=chosen == name)
    if chosen not in COMMANDS:
        _add_pipeline(commands, stage if chosen == PIPELINE else "")
    package, module = (f"cli.{PIPELINE}", stage) if chosen == PIPELINE else ("cli", chosen)
    prog = " ".join(["perfcast", *([PIPELINE] if chosen == PIPELINE else []), module.replace("_", "-")])
    try:
        options = parser.parse_args(typed)
        code: int = plugins.load(package, module).run(options)
    except UserError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        fault = explain_missing_module(error, prog.removeprefix("perfcast "), chosen if chosen == "serve" else "")
        if fault is None:
            raise
        print(f"{prog}: {fault}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print(f"{prog}: interrupted, nothing half-written is left", file=sys.stderr)
        return 130
    except Exception as error:
        fault = explain_os_error(error)
        if fault is None:
            raise
        print(f"{prog}: {fault}", file=sys.stderr)
        return 2
    return code


def _add_pipeline(commands: argparse._SubParsersAction[_Parser], chosen: str) -> None:
    """Add `perfcast pipeline` with its stages, all of them or the chosen one."""
    summary = f"Run one stage of the pipeline: {', '.join(name.replace('_', '-') for name in STAGES)}."
    epilog = "Snakemake runs the stages; see workflow/rules."
    pipeline = commands.add_parser(PIPELINE, help=summary, description=summary, epilog=epilog)
    stages = pipeline.add_subparsers(dest="stage", metavar="STAGE", required=True, title="stages")
    for name in STAGES:
        if chosen == name or chosen not in STAGES:
            _add_command(stages, f"cli.{PIPELINE}", name, loaded=chosen == name)


def _add_command(commands: argparse._SubParsersAction[_Parser], package: str, name: str, *, loaded: bool) -> None:
    """Add one command with its help; its module is imported, and its options are added, where it is `loaded`."""
    path = Path(__file__).parent.joinpath(*package.split(".")[1:], f"{name}.py")
    summary = (ast.get_docstring(ast.parse(path.read_bytes())) or "").partition("\n")[0]
    example = EXAMPLES.get(f"{PIPELINE} {name}" if package != "cli" else name) or EXAMPLES.get(name)
    command = commands.add_parser(
        name.replace("_", "-"),
        help=summary,
        description=summary,
        epilog=f"example:\n  {example}" if example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if loaded:
        plugins.load(package, name).add_arguments(command)


if __name__ == "__main__":
    sys.exit(main())
