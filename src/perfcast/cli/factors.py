"""Write ratios, watts and facts of every CPU model as one table.

`--format` writes the columns that tools of carbon accounting read.

Examples:
    perfcast factors --baseline 'Xeon Gold 6148' --out factors.csv
    perfcast factors --baseline 'EPYC 7742' --format codecarbon --out cpu.csv
"""

from __future__ import annotations

import argparse

from perfcast.cli import asking
from perfcast.cli.arguments import add_shared

FORMATS = ("table", "codecarbon", "boavizta", "ccf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--baseline", required=True, metavar="NAME", help="the CPU model whose factors are 1")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="columns of the table")
    add_shared(parser, "--out", out="the .csv file to write")
    asking.add_champion(parser)
    asking.add_prediction(parser)
    asking.add_power(parser)


def run(options: argparse.Namespace) -> int:
    """Write the table."""
    from perfcast.decisions.factors import arrange_factors, list_factors
    from perfcast.inference.prediction import as_csv
    from perfcast.utils.io import write_text

    asking.check_out(options, ".csv")
    chosen, suites = asking.read_options(options), asking.read_suites(options)
    table = list_factors(options.baseline, suites, chosen)
    arranged = arrange_factors(table, options.format)
    with asking.replacing(options.out):
        write_text(options.out, as_csv(arranged))
    print(f"{options.out}: {asking.count_words(len(arranged), 'row')}; {table['source'].iloc[0]}")
    return 0
