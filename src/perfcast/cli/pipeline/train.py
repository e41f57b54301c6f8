"""Train one predictor on one split.

Examples:
    perfcast pipeline train host_gemm random ridge \\
      --table results/features/host_gemm.parquet \\
      --folds results/splits/host_gemm/random.parquet --out run
"""

from __future__ import annotations

import argparse
import os

from perfcast.cli.arguments import add_shared, seed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "split", "predictor", "--table", "--folds", "--out", out="folder of the run")
    add_shared(parser, "--preset", "--backtest-windows", "--project")
    parser.add_argument("--seeds", type=seed, nargs="+", default=[0], metavar="N", help="seeds (default: 0)")
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE", help="Hydra override")


def run(options: argparse.Namespace) -> int:
    """Train and write the run's folder; `perfcast pipeline record` records it."""
    from perfcast.config.compose import compose

    names = {"dataset": options.dataset, "predictor": options.predictor, "split": options.split}
    chosen = {**names, "preset": options.preset, "seeds": f"[{','.join(map(str, options.seeds))}]"}
    config = compose(options.project, [*[f"{key}={value}" for key, value in chosen.items()], *options.override])
    from perfcast import tracking
    from perfcast.experiment.training import TrainingJob, run_training

    store = tracking.store_from(config["tracking"], options.project, os.environ)
    files = {"table_file": options.table, "folds_file": options.folds, "out": options.out}
    if options.preset != "quick":  # whose trainings take seconds
        files["checkpoints"] = options.out.with_name(f".{options.out.name}.checkpoints")
    job = TrainingJob(**names, **files, max_backtests=options.backtest_windows)
    run_training(job, config, store)
    return 0
