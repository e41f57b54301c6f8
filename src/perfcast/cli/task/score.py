"""Score files of predictions as the board does.

The metrics are MAPE, MedAPE, interval score and coverage. A file is Parquet
with the columns row, point, low, high and split_sha256, as `make_submission`
of an exported task writes it. low and high are the 5 % and 95 % quantiles. The
name of the file is that of the predictor.

Examples:
    perfcast task score catboost.parquet
    perfcast task score catboost.parquet hybrid_trees.parquet \\
      --against hybrid_trees --out board.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_project, add_shared, whole
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="predictions, a Parquet file each")
    parser.add_argument("--dataset", default="spec_cpu2017", metavar="NAME", help="dataset of the task")
    parser.add_argument("--against", metavar="PREDICTOR", help="show differences to this one of the files")
    parser.add_argument("--out", type=Path, metavar="FILE", help="CSV file of all tasks to write")
    parser.add_argument("--resamples", type=whole(1, 100_000), default=1000, metavar="N", help="bootstrap resamples")
    add_shared(parser, "--results", "--seed")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Score, print a line for each file, and write the table."""
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.experiment.submissions import read_submission, score_submissions, show_board
    from perfcast.experiment.task_export import read_split
    from perfcast.schema.table_files import content_digest, read_table
    from perfcast.splits import frozen_split
    from perfcast.utils.io import atomic_path
    from perfcast.utils.terminal_tables import render_table, terminal_width

    name = options.dataset
    table = read_table(options.results / "features" / f"{name}.parquet")
    outlier = read_dataset(options.project / "conf", name).label_outlier
    paths = sorted((options.results / "splits" / name).glob("*.parquet"))
    splits = {path.stem: read_split(path, table, outlier) for path in paths if not frozen_split(path.stem)}
    submissions = {}
    for path in options.files:
        if path.stem in submissions:
            raise UserError("files must have names of their own", f"two are {path.stem}", "rename one")
        submissions[path.stem] = read_submission(path, table, splits, outlier)
    version = content_digest(read_table(options.results / "standard" / f"{name}.parquet"))[:12]
    board = score_submissions(
        submissions, table, version, against=options.against, resamples=options.resamples, seed=options.seed
    )
    if options.out:
        with atomic_path(options.out) as temporary:
            board.to_csv(temporary, index=False, float_format="%.4g", lineterminator="\n")
    print(render_table(*show_board(board), terminal_width()))
    return 0
