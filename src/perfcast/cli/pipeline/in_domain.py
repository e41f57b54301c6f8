"""Measure the distance of a split's test rows and backtest rows from the rows fitted on."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli import _arguments
from perfcast.cli._arguments import add_project
from perfcast.config.experiment import read_dataset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset")
    parser.add_argument("split")
    parser.add_argument("--table", type=Path, required=True, help="the table with features")
    parser.add_argument("--folds", type=Path, required=True, help="the split")
    parser.add_argument(
        "--backtest-windows", type=_arguments.backtests, default=1, help="most backtests of a forward split"
    )
    parser.add_argument("--out", type=Path, required=True)
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Write one row per fold, backtest and predicted row."""
    from perfcast.experiment.uncertainty_fit import fold_distances
    from perfcast.schema.table_files import read_table
    from perfcast.splits import read_folds
    from perfcast.utils.io import atomic_path

    outlier = read_dataset(options.project / "conf", options.dataset).label_outlier
    table = read_table(options.table)
    distances = fold_distances(table, read_folds(options.folds, table), outlier, options.backtest_windows)
    with atomic_path(options.out) as path:
        distances.to_parquet(path, index=False, compression="zstd")
    return 0
