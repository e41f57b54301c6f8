"""Select the best predictor, and fit it on every row.

Examples:
    perfcast pipeline champion host_gemm --runs results/runs/host_gemm \\
      --table results/features/host_gemm.parquet \\
      --standard results/standard/host_gemm.parquet --raw results/raw \\
      --splits random --predictors ridge --out results/champion/host_gemm
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli.arguments import add_shared, chosen
from perfcast.utils.progress import show_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "--runs", "--table", "--standard", "--raw", "--splits", "--predictors", "--out")
    add_shared(parser, "--preset", "--backtest-windows", "--seed", "--project")


def run(options: argparse.Namespace) -> int:
    """Write the champion's folder: the model, and about.json with its name and the reason of the choice."""
    from perfcast.experiment.champion import write_champion

    files = chosen(options, "runs", "table", "standard", "raw")
    choices = chosen(options, "dataset", "splits", "predictors", "preset", "seed")
    with show_progress() as show:
        about = write_champion(
            options.out,
            options.project / "conf",
            max_backtests=options.backtest_windows,
            progress=show,
            **files,
            **choices,
        )
    print(f"{options.dataset}: champion {about['predictor']}", file=sys.stderr)
    return 0
