"""Compare machines side by side: scores, probabilities and drivers.

Every machine is a text such as '2 x EPYC 9654' or 'EPYC 9654; chips=2;
memory=24 x 64 GB DDR5-4800', or a file of machines.

Examples:
    perfcast compare '2 x EPYC 9654' '2 x Xeon Platinum 8480+'
    perfcast compare machines.csv --measured mine.csv
"""

from __future__ import annotations

import argparse
from functools import partial

from perfcast.cli import asking
from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("machines", nargs="+", metavar="MACHINE", help="'2 x EPYC 9654', or a file of machines")
    asking.add_machine_flags(parser)
    asking.add_champion(parser)
    asking.add_prediction(parser)
    add_shared(parser, "--explain", explain="print the drivers of the differences as well")
    asking.add_output(parser, ".csv or .json")


def run(options: argparse.Namespace) -> int:
    """Compare, and print or write."""
    from perfcast.decisions.display import format_comparison
    from perfcast.decisions.machine_comparison import compare_machines
    from perfcast.inference.machine_files import add_fields

    asking.check_out(options, ".csv", ".json")
    chosen = asking.read_options(options)
    suites = asking.read_suites(options)
    machines = asking.read_short_machines(options.machines, suites.first)
    entries = add_fields(machines, suites.rules.names.read_files(asking.read_machine_flags(options)))
    measured = asking.read_user_measurements(options, entries, suites)
    comparison = compare_machines(entries, suites, chosen, measured=measured)
    counted = f"{asking.count_words(len(comparison.machines), 'machine')} compared"
    format_text = partial(format_comparison, explain=options.explain)
    return asking.finish(options, comparison, format_text, counted, level=chosen.level, total=len(entries))
