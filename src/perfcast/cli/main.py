"""`perfcast COMMAND`, `perfcast pipeline STAGE`: one module per command, imported only when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from perfcast import plugins
from perfcast.utils.errors import UserError, explain_missing_module, explain_os_error

try:
    from perfcast.cli.command_parser import COMMANDS, STAGES, build_parser, check_command, find_command
except UserError as damaged:  # of the installation
    print(f"perfcast: {damaged}", file=sys.stderr)
    sys.exit(2)

__all__ = ["COMMANDS", "STAGES", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done, 2 a mistake of the user in one line, 3 a batch with machines that cannot be used, 130 interrupted.
    """
    if "_ARGCOMPLETE" in os.environ:
        _complete(os.environ["COMP_LINE"].split()[1:])
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = find_command(words)
    try:
        check_command(words)
        parser, chosen = build_parser(command)
        options, unknown = parser.parse_known_args(words)
        if unknown:
            chosen.refuse_unknown(unknown)
        code: int = plugins.load(command.package, command.module).run(options)
    except UserError as error:
        print(f"{command.prog}: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        fault = explain_missing_module(
            error, command.prog.removeprefix("perfcast "), "serve" if command.module == "serve" else ""
        )
        if fault is None:
            raise
        print(f"{command.prog}: {fault}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print(f"{command.prog}: interrupted, nothing half-written is left", file=sys.stderr)
        return 130
    except Exception as error:
        fault = explain_os_error(error)
        if fault is None:
            raise
        print(f"{command.prog}: {fault}", file=sys.stderr)
        return 2
    return code


def _complete(words: Sequence[str]) -> None:
    """Answer the shell's request for completions, and exit."""
    import argcomplete

    argcomplete.autocomplete(build_parser(find_command(words))[0])


if __name__ == "__main__":
    sys.exit(main())
