"""Add derived columns, one feature group after the other.

Examples:
    perfcast pipeline features host_gemm \\
      --table results/standard/host_gemm.parquet \\
      --out results/features/host_gemm.parquet
"""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

from perfcast import plugins
from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "--out", "--project")
    parser.add_argument("--table", type=Path, required=True, help="standard table")


def run(options: argparse.Namespace) -> int:
    """Derive the columns of one dataset."""
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.schema.table import Table
    from perfcast.schema.table_files import count_row_groups, read_table, write_tables
    from perfcast.utils.result_digests import record_digests

    modules = [
        plugins.load("features", name) for name in read_dataset(options.project / "conf", options.dataset).features
    ]

    def derived(table: Table) -> Table:
        for module in modules:
            table = module.derive(table)
        return table

    first = read_table(options.table, group=0)
    # a feature is of its row alone, so any group of rows can be taken by itself
    others = (read_table(options.table, group=number) for number in range(1, count_row_groups(options.table)))
    write_tables((derived(table) for table in chain([first], others)), options.out)
    record_digests(options.out)
    return 0
