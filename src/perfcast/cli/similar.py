"""Find the measured machines that are nearest to a described one.

Examples:
    perfcast similar --processor 'AMD EPYC 9755'
    perfcast similar --this-machine --task CINT2017rate --count 5
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli import asking
from perfcast.cli.arguments import add_shared, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    asking.add_machines(parser)
    parser.add_argument("--count", type=whole(1, 1000), default=10, metavar="N", help="results for each task")
    add_shared(parser, "--task", "--no-assume")
    asking.add_champion(parser)
    asking.add_output(parser, ".csv or .json")


def run(options: argparse.Namespace) -> int:
    """Find, and print or write."""
    from perfcast.decisions.display import format_nearest
    from perfcast.decisions.nearest_machines import find_nearest

    asking.check_out(options, ".csv", ".json")
    suites = asking.read_suites(options)
    names = {"count": options.count, "tasks": asking.read_tasks(options, suites), "assume": not options.no_assume}
    nearest = find_nearest(asking.read_entries(options, suites.first), suites, **names)
    asking.write_answer(options, nearest, format_nearest)
    count = sum(len(each.similar) for each in nearest.machines)
    datasets = ", ".join(each.dataset for each in suites)
    print(f"{asking.count_words(count, 'measured result')} of {datasets}", file=sys.stderr)
    return 0
