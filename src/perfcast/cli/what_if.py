"""Forecast a machine with some of its characteristics varied, in all combinations, and plot the answer."""

from __future__ import annotations

import argparse
import math
import sys

from perfcast.cli._choosing import add_asked, add_shape, as_csv, as_json, asked_of, told
from perfcast.cli._machines import add_champion, add_machines, champion_of, entries_of
from perfcast.cli.predict import own_of
from perfcast.errors import UserError

SHOWN = 100
"""Combinations above which a bar shows how far the work is."""


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
    add_asked(parser)
    add_shape(parser, ".svg (a plot), .csv or .json")


def run(options: argparse.Namespace) -> int:
    """Vary, and print, write or plot."""
    from perfcast.choosing.drawing import draw_sweep
    from perfcast.choosing.sweeping import sweep
    from perfcast.choosing.text import sweep_as_text
    from perfcast.choosing.varying import read_varied
    from perfcast.forecasting.tasks import TaskNames
    from perfcast.io import write_text

    ending = "" if options.out is None else options.out.suffix
    if options.out is not None and ending not in (".svg", ".csv", ".json"):
        raise UserError("--out must end in .svg, .csv or .json", f"it is {options.out.name!r}")
    asked = asked_of(options)
    champion = champion_of(options)
    varied = read_varied(options.vary, champion.vocabulary)
    entries = entries_of(options, champion, or_nothing=bool(varied))
    if len(entries) != 1:
        raise UserError("what is varied is one machine", f"{options.machines} describes {len(entries)}")
    names = TaskNames(champion)
    tasks = list(dict.fromkeys(names.get(text, "--task") for text in options.task))
    many = math.prod(len(one.points) for one in varied) > SHOWN
    found = sweep(entries[0], varied, champion, tasks, asked, own=own_of(options, entries, champion), progress=many)
    if ending == ".svg":
        write_text(options.out, draw_sweep(found))
    elif ending:
        write_text(options.out, as_json(found.to_dict()) if ending == ".json" else as_csv(found.to_frame()))
    if options.json:
        print(as_json(found.to_dict()), end="")
    elif options.csv:
        print(as_csv(found.to_frame()), end="")
    elif ending in ("", ".svg"):
        print(sweep_as_text(found))
    print(told(len(found.possible), champion, asked.level), file=sys.stderr)
    return 0
