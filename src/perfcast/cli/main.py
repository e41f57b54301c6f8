"""`perfcast COMMAND`, `perfcast pipeline STAGE`: one module per command, imported only when it runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from perfcast.utils.errors import UserError, explain_missing_module, explain_os_error
from perfcast.utils.portable_digits import fix_digits

try:
    from perfcast.cli.command_parser import COMMANDS, STAGES, build_parser, check_command, find_command, load_command
except UserError as damaged:  # of the installation
    print(f"perfcast: {damaged}", file=sys.stderr)
    sys.exit(2)

__all__ = ["COMMANDS", "STAGES", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done, 2 a mistake of the user in one line, 3 a batch with machines that cannot be used, 130 interrupted.
    """
    gc.set_threshold(50_000)  # imports make many objects and no garbage: a fifth of the time of those of Lightning
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = find_command(words)
    if command.package == "cli.pipeline":
        fix_digits()  # before NumPy and torch are imported
    try:
        check_command(words)
        parser = build_parser(command)
        # values of a training stand among its options; elsewhere help would lose the defaults of positional arguments
        mixed = command.module.endswith("train")
        parse = parser.parse_known_intermixed_args if mixed else parser.parse_known_args
        options, unknown = parse(words[command.count :])
        if unknown:
            parser.refuse_unknown(unknown)
        code: int = load_command(command.package, command.module).run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `| head`; Python would flush again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(f"{command.prog}: interrupted, nothing half-written is left", file=sys.stderr)
        return 130
    except Exception as error:
        fault: Exception | None = error if isinstance(error, UserError) else explain_os_error(error)
        if isinstance(error, ImportError):
            extra = "serve" if command.module == "serve" else ""
            fault = explain_missing_module(error, command.prog.removeprefix("perfcast "), extra)
        if fault is None:
            raise
        print(f"{command.prog}: {fault}", file=sys.stderr)
        return 2
