"""Collect the metrics of finished runs; show them in README.md.

One CSV file per dataset has them; the documentation reads the same files.

Examples:
    perfcast leaderboard
    perfcast leaderboard --results results/full results/ablation
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    default = [Path("results")]
    parser.add_argument(
        "--results", type=Path, nargs="+", default=default, metavar="FOLDER", help="folders of runs (default: results)"
    )
    out = Path("results/leaderboard")
    parser.add_argument("--out", type=Path, default=out, metavar="FOLDER", help="folder of the CSV files")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Update the CSV files and README.md."""
    from perfcast.ops.leaderboard import collect_leaderboard, update_leaderboard, update_tables, write_readme

    for results in options.results:
        for folder in sorted((results / "evaluation").glob("*/")):
            path = options.out / f"{folder.name}.csv"
            runs = update_leaderboard(path, collect_leaderboard(results, folder.name))
            update_tables(options.out, results, folder.name)
            print(f"{path}: {runs} runs")
    write_readme(options.project, options.out)
    return 0
