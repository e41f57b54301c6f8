"""Predict test machines as users describe them, level by level.

Examples:
    perfcast pipeline described spec_cpu2017 --described forward_2024 \\
      --runs results/runs/spec_cpu2017 \\
      --table results/features/spec_cpu2017.parquet \\
      --standard results/standard/spec_cpu2017.parquet --raw results/raw \\
      --folds results/splits/spec_cpu2017 \\
      --in-domain results/in_domain/spec_cpu2017 \\
      --splits forward_2024 --predictors hybrid_trees --out described.parquet
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli.arguments import add_shared, share


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "--runs", "--table", "--standard", "--raw", "--folds", "--splits", "--predictors")
    add_shared(parser, "--seed", "--project", "--out")
    parser.add_argument("--described", nargs="+", required=True, metavar="SPLIT", help="splits that are predicted")
    parser.add_argument(
        "--in-domain", type=Path, required=True, metavar="FOLDER", help="folder of the distances by split"
    )
    parser.add_argument("--level", type=share, default=0.9, metavar="SHARE", help="level of the intervals")


def run(options: argparse.Namespace) -> int:
    """Write the predictions of the champion of the splits."""
    from perfcast.experiment.champion import select_champion
    from perfcast.experiment.described import predict_described_splits
    from perfcast.utils.io import atomic_path
    from perfcast.utils.result_digests import record_digests

    champion = select_champion(options.runs, options.splits, options.predictors).predictor
    predictions = predict_described_splits(
        {split: options.runs / split / champion for split in options.described},
        options.dataset,
        conf=options.project / "conf",
        table=options.table,
        standard=options.standard,
        raw=options.raw,
        folds=options.folds,
        distances=options.in_domain,
        seed=options.seed,
        level=options.level,
    )
    with atomic_path(options.out) as path:
        predictions.to_parquet(path, index=False, compression="zstd", write_page_checksum=True)
    record_digests(options.out)
    print(f"{options.dataset}: {len(predictions)} predictions of described machines by {champion}", file=sys.stderr)
    return 0
