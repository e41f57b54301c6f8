"""Collect the metrics of finished runs in results/leaderboard, and render the headline table of README.md from them."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli._arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--results", type=Path, nargs="+", default=[Path("results")], help="folders of finished runs")
    parser.add_argument("--out", type=Path, default=Path("results/leaderboard"), help="folder of the CSV files")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Update the CSV files and README.md."""
    from perfcast.ops.leaderboard import collect_leaderboard, update_leaderboard, write_readme

    for results in options.results:
        for folder in sorted((results / "evaluation").glob("*/")):
            path = options.out / f"{folder.name}.csv"
            runs = update_leaderboard(path, collect_leaderboard(results, folder.name, options.project / "conf"))
            print(f"{path}: {runs} runs")
    write_readme(options.project, options.out)
    return 0
