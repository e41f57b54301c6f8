"""Learn the newest official results without training.

It asks before it learns results that look wrong.

Examples:
    perfcast update
    perfcast update --from cpu2017-results.csv
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli import asking
from perfcast.cli.arguments import add_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--from",
        dest="given",
        type=Path,
        metavar="FILE",
        help="dump of all results, .csv or .csv.gz (default: that at the official address)",
    )
    parser.add_argument("--yes", action="store_true", help="learn results that look wrong without asking")
    asking.add_champion(parser, facts=False)
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Update, and print what changes."""
    from perfcast.experiment.update import update_champion

    folder = options.champion or options.results / "champion" / options.dataset
    where = {"results": options.results, "project": options.project}

    def agree(doubts: str) -> bool:
        if options.yes or not sys.stdin.isatty():
            return bool(options.yes)
        print(f"{doubts}. Learn these results? [y/N] ", end="", flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    for line in update_champion(folder, options.dataset, options.given, agree=agree, **where):
        print(line, flush=True)
    return 0
