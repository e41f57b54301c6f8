"""Write a new domain, a distribution of its own.

It has a dataset, a split, a feature group and rules of descriptions.

Examples:
    perfcast new domain bikes --out bikes
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", help="name in lower case with underscores")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="folder to write (default: the name)")


def run(options: argparse.Namespace) -> int:
    """Write the files, and print them and the next commands."""
    from perfcast.ops.new_files import write_domain

    print(write_domain(options.name, options.out or Path(options.name)))
    return 0
