"""Add derived columns, one feature group after the other."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast import plugins
from perfcast.cli._common import add_project
from perfcast.config import read_dataset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset")
    parser.add_argument("--table", type=Path, required=True, help="the standard table")
    parser.add_argument("--out", type=Path, required=True)
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Derive the columns of one data set."""
    from perfcast.schema import read_table, write_table

    table = read_table(options.table)
    for name in read_dataset(options.project / "conf", options.dataset).features:
        table = plugins.load("features", name).derive(table)
    write_table(table, options.out)
    return 0
