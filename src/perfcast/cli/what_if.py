"""Predict a machine with some fields varied, in all combinations, and plot the answer."""

from __future__ import annotations

import argparse
import math

from perfcast.cli._prediction_options import (
    add_champion,
    add_machines,
    add_output,
    add_prediction,
    check_ending,
    read_champion,
    read_entries,
    read_options,
    read_user_measurements,
    report,
    write_answer,
)
from perfcast.utils.errors import UserError

_MAX_WITHOUT_PROGRESS = 100
"""Combinations above which a progress bar is shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_machines(parser)
    parser.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="values joined by commas (or by |), or LOW..HIGH[:STEP]; may be repeated, all combinations are made",
    )
    parser.add_argument("--task", action="append", default=[], help="this task only; may be repeated")
    add_champion(parser)
    add_prediction(parser)
    add_output(parser, ".svg (a plot), .csv or .json")


def run(options: argparse.Namespace) -> int:
    """Vary, and print, write or plot."""
    from perfcast.decisions.decision_text import format_grid
    from perfcast.decisions.varied_fields import read_varied_fields
    from perfcast.decisions.what_if import predict_grid
    from perfcast.utils.io import write_text
    from perfcast.utils.terminal_tables import terminal_width

    check_ending(options, ".svg", ".csv", ".json")
    chosen = read_options(options)
    champion = read_champion(options)
    varied = read_varied_fields(options.vary, champion.fields)
    entries = read_entries(options, champion, allow_empty=bool(varied))
    if len(entries) != 1:
        raise UserError("one machine is varied", f"{options.machines} describes {len(entries)}", "keep one of them")
    tasks = list(dict.fromkeys(champion.task_names.get(text, "--task") for text in options.task))
    many = math.prod(len(field.points) for field in varied) > _MAX_WITHOUT_PROGRESS
    measurements = read_user_measurements(options, entries, champion)
    grid = predict_grid(entries[0], varied, champion, tasks, chosen, measurements=measurements, progress=many)
    if options.out is not None and options.out.suffix == ".svg":
        from perfcast.decisions.what_if_plot import draw_grid

        write_text(options.out, draw_grid(grid))
    write_answer(options, grid, lambda: format_grid(grid, terminal_width()))
    report(f"{len(grid.possible)} machines predicted", champion.name, champion.preset, chosen.level)
    return 0
