"""Find the measured machines that are nearest to a described one, with their differences."""

from __future__ import annotations

import argparse
import sys

from perfcast.cli._prediction_options import (
    add_champion,
    add_machines,
    add_output,
    check_ending,
    read_champion,
    read_entries,
    write_answer,
)
from perfcast.utils.errors import UserError

_MAX_COUNT = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_machines(parser)
    parser.add_argument("--count", type=int, default=10, metavar="N", help="results for each task (default: 10)")
    parser.add_argument("--task", action="append", default=[], help="this task only; may be repeated")
    parser.add_argument("--no-assume", action="store_true", help="leave missing values unknown")
    add_champion(parser)
    add_output(parser, ".csv or .json")


def run(options: argparse.Namespace) -> int:
    """Find, and print or write."""
    from perfcast.decisions.decision_text import format_nearest
    from perfcast.decisions.nearest_machines import find_nearest_machines
    from perfcast.inference.parse import parse_machines
    from perfcast.utils.terminal_tables import terminal_width

    if not 1 <= options.count <= _MAX_COUNT:
        raise UserError(f"--count must be between 1 and {_MAX_COUNT}", f"it is {options.count}")
    check_ending(options, ".csv", ".json")
    champion = read_champion(options)
    tasks = list(dict.fromkeys(champion.task_names.get(text, "--task") for text in options.task))
    machines = parse_machines(read_entries(options, champion), champion)
    nearest = find_nearest_machines(machines, champion, count=options.count, tasks=tasks, assume=not options.no_assume)
    width = terminal_width()
    write_answer(options, nearest, lambda: "\n\n".join(format_nearest(machine, width) for machine in nearest.machines))
    count = sum(len(machine.similar) for machine in nearest.machines)
    print(f"{count} measured results of {champion.dataset}", file=sys.stderr)
    return 0
