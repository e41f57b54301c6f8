"""Select the best predictor, fit it on every row, register it.

Examples:
    perfcast pipeline champion host_gemm --runs results/runs/host_gemm \\
      --table results/features/host_gemm.parquet \\
      --standard results/standard/host_gemm.parquet --raw results/raw \\
      --splits random --predictors ridge --out results/champion/host_gemm
"""

from __future__ import annotations

import argparse
import os
import sys

from perfcast.cli.arguments import add_shared
from perfcast.config.compose import compose
from perfcast.utils.progress import show_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "--runs", "--table", "--standard", "--raw", "--splits", "--predictors", "--out")
    add_shared(parser, "--preset", "--backtest-windows", "--seed", "--project")


def run(options: argparse.Namespace) -> int:
    """Write the champion's folder: the model, and about.json with its name and the reason of the choice."""
    from perfcast import tracking
    from perfcast.experiment.champion import ChampionFiles, write_champion
    from perfcast.inference.champion import load_champion

    files = ChampionFiles(options.runs, options.table, options.standard, options.raw)
    with show_progress() as show:
        about = write_champion(
            options.out,
            files,
            options.project / "conf",
            options.dataset,
            splits=options.splits,
            predictors=options.predictors,
            preset=options.preset,
            seed=options.seed,
            max_backtests=options.backtest_windows,
            progress=show,
        )
    print(f"{options.dataset}: champion {about['predictor']}", file=sys.stderr)
    overrides = [f"dataset={options.dataset}", f"predictor={about['predictor']}", "split=all"]
    store = tracking.store_from(compose(options.project, overrides)["tracking"], options.project, os.environ)
    if store is not None:
        saved = load_champion(options.out)
        tracking.record_champion(store, options.out, about, saved.field_types(), saved.example_machine())
    return 0
