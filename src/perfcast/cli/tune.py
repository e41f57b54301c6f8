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

from perfcast.cli.arguments import add_shared, number, whole

_FLAGS = {
    "--worker": "run trials until every study is complete, and write nothing else: for further jobs",
    "--write": "write the chosen values into conf/tuned",
}
_AT_ONCE = "trials of a fold that are proposed together and run side by side; none uses the results of the others"
_STORAGE = "sqlite, a file below --out; journal, a file for a network file system; or the URL of a database"
_ALSO = "write the values for these splits too, where the search uses none of their test rows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "split", "predictor", "--table", "--folds", "--preset", "--seed", "--project")
    add_shared(parser, "--out", out="folder of the studies: <dataset>/<split>/<predictor>")
    count = whole(1, 1_000_000)
    parser.add_argument("--trials", type=count, default=20, metavar="N", help="finished trials per fold")
    parser.add_argument("--timeout", type=number(1e-3, 1e9), metavar="SECONDS", help="start no trial after this time")
    parser.add_argument("--fold", type=int, nargs="+", metavar="K", help="only these folds (default: all)")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="processes that share the work")
    parser.add_argument("--at-once", type=count, default=1, metavar="N", help=_AT_ONCE)
    parser.add_argument("--storage", default="sqlite", metavar="PLACE", help=_STORAGE)
    for flag, meaning in _FLAGS.items():
        parser.add_argument(flag, action="store_true", help=meaning)
    parser.add_argument("--also", nargs="+", default=[], metavar="SPLIT", help=_ALSO)


def run(options: argparse.Namespace) -> int:
    """Continue the study of every fold and write the outcome."""
    from perfcast.experiment.tuning_job import TuningJob, tune_predictor

    same = ("dataset", "split", "predictor", "out", "project", "preset", "trials", "seed", "timeout", "at_once")
    job = TuningJob(
        **{name: getattr(options, name) for name in (*same, "storage", "also", "write")},
        table_file=options.table,
        folds_file=options.folds,
        folds=options.fold,
    )

    def report(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    tune_predictor(job, report, processes=options.jobs, worker=options.worker)
    return 0
