"""Compute the metrics of one dataset from its predictions.

Examples:
    perfcast pipeline evaluate host_gemm \\
      --table results/features/host_gemm.parquet --runs results/runs/host_gemm \\
      --splits random --predictors ridge --out results/evaluation/host_gemm
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from perfcast.cli.arguments import add_shared, share


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "--table", "--runs", "--splits", "--predictors", "--out")
    add_shared(parser, "--resamples", "--seed", "--project")
    parser.add_argument(
        "--in-domain", type=Path, metavar="FOLDER", help="folder of the distances by split; without it, no intervals"
    )
    parser.add_argument("--described", type=Path, metavar="FILE", help="predictions of described machines, if any")
    parser.add_argument(
        "--level",
        metavar="SHARE",
        type=share,
        help="level of the intervals, 0 to 1 (default: 0.9)",
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate one dataset."""
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.evaluation import evaluate, write_evaluation
    from perfcast.schema.table_files import read_parquet, read_table
    from perfcast.uncertainty.conformal import LEVEL

    names, distances = product(options.splits, options.predictors), options.in_domain
    declared = read_dataset(options.project / "conf", options.dataset)
    evaluation = evaluate(
        {(split, predictor): options.runs / split / predictor for split, predictor in names},
        read_table(options.table),
        resamples=options.resamples,
        seed=options.seed,
        published=[entry.model_dump() for entry in declared.published],
        in_domain={split: distances / f"{split}.parquet" for split in options.splits} if distances else {},
        described=read_parquet(options.described) if options.described else None,
        tables=declared.load_tables(),
        level=LEVEL if options.level is None else options.level,
    )
    write_evaluation(evaluation, options.out)
    return 0
