"""Write the conf of a CSV file of your own, by looking at it.

The file is copied to data/embedded. The target is the column that is named
like a score or a time, else the last one of numbers. Texts tell what was
measured and what was run; the other columns are features. Read the conf that
is written, and correct it.

Examples:
    perfcast new dataset scores.csv
    perfcast new dataset scores.csv --target ops --entity machine --task suite
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path, help="CSV file with a header")
    for name, text in {
        "target": "measured quantity",
        "entity": "name of what was measured",
        "task": "name of what was run",
        "date": "date of the measurement",
    }.items():
        parser.add_argument(f"--{name}", default="", metavar="COLUMN", help=f"column with the {text}")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Write the files, and print them and the next commands."""
    from perfcast.ops.new_files import write_dataset

    given = {name: getattr(options, name) for name in ("target", "entity", "task", "date")}
    print(write_dataset(options.file, given, options.project))
    return 0
