"""Search the hyperparameters of a predictor for one split.

Trials are evaluated fold by fold on validation rows inside the training part.

Examples:
    perfcast tune host_gemm random ridge --trials 5 --out results/tuning \\
      --table results/features/host_gemm.parquet \\
      --folds results/splits/host_gemm/random.parquet
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli.arguments import add_shared, chosen, number, whole

_ALSO = "write the values for these splits too, where the search uses none of their test rows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "split", "predictor", "--table", "--folds", "--preset", "--seed", "--project")
    add_shared(parser, "--out", out="folder of the studies: <dataset>/<split>/<predictor>")
    parser.add_argument("--trials", type=whole(1, 1_000_000), default=20, metavar="N", help="finished trials per fold")
    parser.add_argument("--timeout", type=number(1e-3, 1e9), metavar="SECONDS", help="start no trial after this time")
    parser.add_argument("--write", action="store_true", help="write the chosen values into conf/tuned")
    parser.add_argument("--also", nargs="+", default=[], metavar="SPLIT", help=_ALSO)


def run(options: argparse.Namespace) -> int:
    """Continue the study of every fold and write the outcome."""
    from perfcast.experiment.tuning import TuningJob, tune_predictor

    names = ("dataset", "split", "predictor", "out", "project", "preset", "trials", "seed", "timeout", "also", "write")
    job = TuningJob(**chosen(options, *names), table_file=options.table, folds_file=options.folds)
    tune_predictor(job, lambda line: print(line, file=sys.stderr, flush=True))
    return 0
