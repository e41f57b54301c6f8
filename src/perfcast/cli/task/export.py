"""Write a dataset and its splits as a task for any tool.

The folder has the features, the splits as row ids, the declared columns, and
task.py, which loads the folds and scores predictions with pandas alone.

Examples:
    perfcast task export --splits forward_2024 --out task
    perfcast task export --dataset host_gemm --splits random \\
      --runs ridge --out task
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_project, add_shared
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--dataset", default="spec_cpu2017", metavar="NAME", help="dataset of the task")
    parser.add_argument("--splits", nargs="+", required=True, metavar="NAME", help="splits of the task")
    parser.add_argument(
        "--structure", metavar="PREDICTOR", help="fit it on every fold, and write what it predicts for all rows"
    )
    parser.add_argument(
        "--runs", nargs="+", default=[], metavar="PREDICTOR", help="write predictions of these runs as submissions"
    )
    add_shared(parser, "--results", "--out", out="new folder")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Export, and print the digests of the splits."""
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.config.predictor_conf import read_predictor
    from perfcast.experiment.task_export import export_run, export_task, read_split, split_digest
    from perfcast.schema.table_files import read_table

    name = options.dataset
    results = options.results
    folds = results / "splits" / name
    table = read_table(results / "features" / f"{name}.parquet")
    outlier = read_dataset(options.project / "conf", name).label_outlier
    runs = {(split, each): results / "runs" / name / split / each for split in options.splits for each in options.runs}
    for folder in runs.values():
        if not folder.is_dir():
            raise UserError("--runs must be finished trainings", f"there is no {folder}", "leave it out or train it")
    for line in export_task(
        options.out,
        table,
        options.splits,
        folds=folds,
        label_outlier=outlier,
        structure=read_predictor(options.project / "conf", options.structure) if options.structure else None,
    ):
        print(line, flush=True)
    for (split, predictor), folder in runs.items():
        digest = split_digest(read_split(folds / f"{split}.parquet", table, outlier))
        far = results / "in_domain" / name / f"{split}.parquet"
        path = Path(options.out) / "submissions" / split / f"{predictor}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        export_run(folder, split, digest, far).to_parquet(path, index=False)
        print(f"  {path}")
    return 0
