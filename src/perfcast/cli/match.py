"""Find the smallest instances, or machines, that replace a machine.

Examples:
    perfcast match --processor 'Xeon Gold 6148' --chips 2 --memory '384 GB'
    perfcast match --processor 'EPYC 7742' --among offers.csv --sure 0.95
"""

from __future__ import annotations

import argparse

from perfcast.cli import asking
from perfcast.cli.arguments import chosen as picked
from perfcast.cli.arguments import number, share, whole
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    asking.add_machines(parser)
    parser.add_argument("--among", default="instances", metavar="FILE", help="machines to choose from, or instances")
    parser.add_argument("--mix", metavar="TASK:SHARE,...", help="tasks by their share of the machine's time")
    parser.add_argument("--sure", type=share, default=0.9, metavar="SHARE", help="probability of being as fast")
    free = "share of the new machine that stays free"
    parser.add_argument("--headroom", type=number(0, 0.95), default=0.0, metavar="SHARE", help=free)
    parser.add_argument("--count", type=whole(1, 100), default=10, metavar="N", help="machines that are listed")
    asking.add_answer(parser)


def run(options: argparse.Namespace) -> int:
    """Match, and print or write."""
    from perfcast.decisions.fleet_display import format_sizing
    from perfcast.decisions.match import INSTANCES, find_match
    from perfcast.decisions.sizing_request import read_sizing
    from perfcast.inference.suites import Suites

    asking.check_out(options, ".csv", ".json")
    chosen = asking.read_options(options)
    champion = asking.read_champion(options)
    request = read_sizing(champion, options.mix or "", **picked(options, "sure", "headroom"))
    entries = asking.read_entries(options, champion)
    if len(entries) != 1:
        raise UserError("one machine is matched", f"there are {len(entries)}", "keep one of them")
    among = None if options.among == INSTANCES else asking.read_file(options.among, champion)
    measured = asking.read_user_measurements(options, entries, Suites(champion))
    sizing = find_match(entries[0], among, champion, request, chosen, count=options.count, measured=measured)
    counted = f"{asking.count_words(len(sizing.targets), 'machine')} found"
    total = len(sizing.targets) + len(sizing.refused)
    return asking.finish(options, sizing, format_sizing, counted, level=chosen.level, total=total)
