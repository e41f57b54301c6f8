"""Measure the distance of predicted rows from the rows fitted on.

Examples:
    perfcast pipeline in-domain host_gemm random \\
      --table results/features/host_gemm.parquet \\
      --folds results/splits/host_gemm/random.parquet --out in_domain.parquet
"""

from __future__ import annotations

import argparse

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "split", "--table", "--folds", "--backtest-windows", "--out", "--project")


def run(options: argparse.Namespace) -> int:
    """Write one row per fold, backtest and predicted row."""
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.domain import domain_of
    from perfcast.experiment.uncertainty_fit import fold_distances
    from perfcast.schema.table_files import read_table
    from perfcast.splits import read_folds
    from perfcast.utils.io import atomic_path
    from perfcast.utils.result_digests import record_digests

    conf, table = read_dataset(options.project / "conf", options.dataset), read_table(options.table)
    domain, folds = domain_of(conf.target), read_folds(options.folds, table)
    shift = domain.load(domain.shift) if domain.shift else None
    distances = fold_distances(table, folds, conf.label_outlier, options.backtest_windows, shift)
    with atomic_path(options.out) as path:
        distances.to_parquet(path, index=False, compression="zstd", write_page_checksum=True)
    record_digests(options.out)
    return 0
