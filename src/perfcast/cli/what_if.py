"""Predict a machine with some fields varied, in all combinations.

Examples:
    perfcast what-if --processor 'AMD EPYC 9755' --vary chips=1,2
    perfcast what-if --this-machine --vary memory.total=64..512:64
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli import asking
from perfcast.cli.arguments import add_shared
from perfcast.utils.errors import UserError

_VALUES = "values joined by commas (or by |), or LOW..HIGH:STEP; may be repeated, all combinations are made"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    asking.add_machines(parser)
    parser.add_argument("--vary", action="append", default=[], metavar="NAME=VALUES", help=_VALUES)
    add_shared(parser, "--task")
    asking.add_answer(parser)


def run(options: argparse.Namespace) -> int:
    """Vary, and print, write or plot."""
    from perfcast.decisions.display import format_grid
    from perfcast.decisions.what_if import predict_grids

    asking.check_out(options, ".csv", ".json")
    chosen = asking.read_options(options)
    suites = asking.read_suites(options)
    names = [text.partition("=")[0].strip().lower() for text in options.vary]
    for name in sorted({name for name in names if names.count(name) > 1}):
        print(f"--vary {name} is given {names.count(name)} times: its values are taken together", file=sys.stderr)
    entries = asking.read_entries(options, suites.first, allow_empty=bool(options.vary))
    if len(entries) != 1:
        raise UserError("the machine to vary must be one", f"{options.machines} describes {len(entries)}", "keep one")
    tasks = asking.read_tasks(options, suites)
    measured = asking.read_user_measurements(options, entries, suites)
    grid = predict_grids(entries[0], options.vary, suites, tasks, chosen, measured=measured, progress=True)
    counted = f"{asking.count_words(len(grid.possible), 'machine')} predicted"
    return asking.finish(options, grid, format_grid, counted, level=chosen.level)
