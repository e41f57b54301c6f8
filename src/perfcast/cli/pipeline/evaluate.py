"""Compute the protocol's metrics of one dataset from its predictions."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli import _arguments
from perfcast.cli._arguments import add_shared
from perfcast.config.dataset_conf import read_dataset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset --table --runs --splits --predictors --resamples --seed --out --project")
    parser.add_argument("--in-domain", type=Path, help="folder of the distances by split; without it, no intervals")
    parser.add_argument(
        "--level", type=_arguments.level, help="level of the intervals, 0 to 1 (default: 0.9, that of the protocol)"
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate one dataset."""
    from perfcast.evaluation import evaluate, write_evaluation
    from perfcast.schema.table_files import read_table
    from perfcast.uncertainty.conformal import LEVEL

    runs = {
        (split, predictor): options.runs / split / predictor
        for split in options.splits
        for predictor in options.predictors
    }
    published = [entry.model_dump() for entry in read_dataset(options.project / "conf", options.dataset).published]
    table = read_table(options.table)
    evaluation = evaluate(
        runs,
        table,
        resamples=options.resamples,
        seed=options.seed,
        published=published,
        in_domain={split: options.in_domain / f"{split}.parquet" for split in options.splits}
        if options.in_domain
        else {},
        level=LEVEL if options.level is None else options.level,
    )
    write_evaluation(evaluation, options.out)
    return 0
