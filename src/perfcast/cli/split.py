"""Decide which rows train and which test."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli import _numbers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("split")
    parser.add_argument("--table", type=Path, required=True, help="the standard table")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=_numbers.seed, default=0)


def run(options: argparse.Namespace) -> int:
    """Make one split of one data set, and refuse it if it leaks."""
    from perfcast import splits
    from perfcast.cli._common import BASE
    from perfcast.io import atomic_path
    from perfcast.schema import Tag
    from perfcast.table_files import read_table

    # coded: a split compares texts, and never reads them
    table = read_table(options.table, wanted=splits.reads, coded=True)
    # audited there: a split that leaks is never written
    folds = splits.make(options.split, table, options.seed)
    row = table.column_of(Tag.ROW)
    written = folds.assign(**{row: table.frame[row]})[[row, *folds.columns]]
    if (form := splits.shrunken(options.split)) is not None:
        written.attrs[BASE] = form.base
    with atomic_path(options.out) as path:
        written.to_parquet(path, index=False)
    counts = {name: folds[name].value_counts().to_dict() for name in folds}
    for name, parts in counts.items():
        told = ", ".join(f"{parts.get(part, 0)} {part}" for part in ("train", "valid", "test", "unused"))
        print(f"{table.dataset}/{options.split} {name}: {told}", file=sys.stderr)
    return 0
