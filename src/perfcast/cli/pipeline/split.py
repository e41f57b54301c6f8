"""Divide the rows of a dataset into training and test.

Examples:
    perfcast pipeline split random --table results/standard/host_gemm.parquet \\
      --out results/splits/host_gemm/random.parquet
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "split", "--out", "--seed")
    parser.add_argument("--table", type=Path, required=True, help="standard table")


def run(options: argparse.Namespace) -> int:
    """Make one split of one dataset; a split that leaks is refused and never written."""
    from perfcast import splits
    from perfcast.schema.table_files import read_table
    from perfcast.splits.subsets import SUBSETS
    from perfcast.utils.result_digests import record_digests

    # coded: a split compares texts, and never reads them
    table = read_table(options.table, wanted=splits.reads, coded=True)
    folds = splits.make(options.split, table, options.seed)
    point = splits.learning_curve_point(options.split)
    version = splits.split_version(options.split)
    splits.write_folds(options.out, folds, table, point.base if point else None, version)
    record_digests(options.out)
    for name in folds:
        counts = folds[name].value_counts()
        sizes = ", ".join(f"{counts.get(subset, 0)} {subset}" for subset in SUBSETS)
        print(f"{table.dataset}/{options.split} {name}: {sizes}", file=sys.stderr)
    return 0
