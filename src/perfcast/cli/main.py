"""`perfcast COMMAND`: one module per command in `perfcast.cli`, imported only when it is the one asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from perfcast import __version__, plugins
from perfcast.disk_faults import explain
from perfcast.errors import UserError, printable

COMMANDS = [name for name in plugins.names("cli") if name != "main"]


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, like every other one, instead of with the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 2 a mistake of the user told in one line, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _Parser(prog="perfcast", description="Forecast benchmark results of machines.")
    parser.add_argument("--version", action="version", version=f"perfcast {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = next((word.replace("-", "_") for word in given if not word.startswith("-")), None)
    for name in COMMANDS:
        if name == wanted or wanted not in COMMANDS:
            module = plugins.load("cli", name)
            summary = (module.__doc__ or "").strip().splitlines()[0]
            module.add_arguments(commands.add_parser(name.replace("_", "-"), help=summary, description=summary))
    options = argparse.Namespace(command=wanted)
    try:
        options = parser.parse_args(given)
        code: int = plugins.load("cli", options.command.replace("-", "_")).run(options)
    except UserError as error:
        print(f"perfcast {options.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print(f"perfcast {options.command}: interrupted, nothing half-written is left", file=sys.stderr)
        return 130
    except Exception as error:
        told = explain(error)
        if told is None:
            raise
        print(f"perfcast {options.command}: {told}", file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
