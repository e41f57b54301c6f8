"""Size a fleet: how many new machines replace it.

A row of the file has a count, the fields of a machine, and perhaps its
utilization. A target is a text such as '2 x EPYC 9755; price=25000',
or a file of machines.

Examples:
    perfcast size fleet.csv --onto '2 x EPYC 9755' --onto '2 x Xeon 6980P'
    perfcast size fleet.csv --onto '2 x EPYC 9755; price=25000' \\
      --mix int_rate:0.7,fp_rate:0.3 --headroom 0.3 --growth 0.1 --years 4 \\
      --spare 1 --sure 0.95 --electricity-price 0.2
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli import asking
from perfcast.cli.arguments import chosen as picked
from perfcast.cli.arguments import number, share, whole

_OPTIONS = ("growth", "years", "headroom", "spare", "sure", "electricity_price", "carbon")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("fleet", type=Path, help="a .csv, .json or .yaml file of machines, each with a count")
    parser.add_argument(
        "--onto", action="append", required=True, metavar="MACHINE", help="the new machine; may be repeated, or a file"
    )
    parser.add_argument("--mix", metavar="TASK:SHARE,...", help="tasks by their share of the fleet's time")
    parser.add_argument("--sure", type=share, default=0.9, metavar="SHARE", help="probability that the number suffices")
    free = "share of the new machines that stays free"
    parser.add_argument("--headroom", type=number(0, 0.95), default=0.0, metavar="SHARE", help=free)
    parser.add_argument("--growth", type=number(0, 10), default=0.0, metavar="SHARE", help="of the need, in a year")
    parser.add_argument(
        "--years", type=number(1e-3, 100), default=1.0, metavar="N", help="of growth, over which prices are spread too"
    )
    parser.add_argument("--spare", type=whole(0, 1000), default=0, metavar="N", help="machines that may fail")
    rate = number(0, 1e9)
    price = "of a kWh, in the cost"
    parser.add_argument("--electricity-price", type=rate, default=0.0, metavar="PRICE", help=price)
    parser.add_argument("--carbon", type=rate, default=0.0, metavar="KG", help="CO2 of a kWh, in kg")
    asking.add_answer(parser)
    asking.add_power(parser)


def run(options: argparse.Namespace) -> int:
    """Size, and print or write."""
    from perfcast.decisions.fleet import size_fleet
    from perfcast.decisions.fleet_display import format_sizing
    from perfcast.decisions.sizing_request import read_sizing
    from perfcast.inference.suites import Suites

    asking.check_out(options, ".csv", ".json")
    chosen = asking.read_options(options)
    champion = asking.read_champion(options)
    request = read_sizing(champion, options.mix or "", **picked(options, *_OPTIONS))
    fleet = asking.read_file(options.fleet, champion)
    onto = asking.read_short_machines(options.onto, champion)
    measured = asking.read_user_measurements(options, [], Suites(champion))
    sizing = size_fleet(fleet, onto, champion, request, chosen, measured=measured)
    counted = f"{asking.count_words(sizing.machines, 'machine')} replaced"
    total = len(fleet) + len(onto)
    return asking.finish(options, sizing, format_sizing, counted, level=chosen.level, total=total)
