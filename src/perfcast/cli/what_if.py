"""Predict a machine with some fields varied, in all combinations.

Examples:
    perfcast what-if --processor 'AMD EPYC 9755' --vary chips=1,2
    perfcast what-if --this-machine --vary memory.total=64..512:64 \\
      --out memory.svg
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli import machine_arguments as machine
from perfcast.cli.answers import add_output, check_out, count_words, replacing, report, write_answer
from perfcast.cli.arguments import add_shared
from perfcast.utils.errors import UserError

_VALUES = "values joined by commas (or by |), or LOW..HIGH[:STEP]; may be repeated, all combinations are made"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    machine.add_machines(parser)
    parser.add_argument("--vary", action="append", default=[], metavar="NAME=VALUES", help=_VALUES)
    add_shared(parser, "--task")
    machine.add_champion(parser)
    machine.add_prediction(parser)
    add_output(parser, ".svg (a plot), .csv or .json")


def run(options: argparse.Namespace) -> int:
    """Vary, and print, write or plot."""
    from perfcast.decisions.display import draw_grid, format_grid
    from perfcast.decisions.variants import read_varied_fields
    from perfcast.decisions.what_if import predict_grid

    check_out(options, ".svg", ".csv", ".json")
    chosen = machine.read_options(options)
    champion = machine.read_champion(options)
    varied = read_varied_fields(options.vary, champion.fields)
    names = [text.partition("=")[0].strip().lower() for text in options.vary]
    for name in sorted({name for name in names if names.count(name) > 1}):
        print(f"--vary {name} is given {names.count(name)} times: its values are taken together", file=sys.stderr)
    entries = machine.read_entries(options, champion, allow_empty=bool(varied))
    if len(entries) != 1:
        raise UserError("the machine to vary must be one", f"{options.machines} describes {len(entries)}", "keep one")
    tasks = machine.read_tasks(options, champion)
    measurements = machine.read_user_measurements(options, entries, champion)
    grid = predict_grid(entries[0], varied, champion, tasks, chosen, measurements=measurements, progress=True)
    if options.out is not None and options.out.suffix == ".svg":
        from perfcast.utils.io import write_text

        with replacing(options.out):
            write_text(options.out, draw_grid(grid))
    write_answer(options, grid, format_grid)
    report(f"{count_words(len(grid.possible), 'machine')} predicted", champion.name, champion.preset, chosen.level)
    return 0
