"""Measure memory, caches, compute, sort, compression and branches.

Every kernel is measured by size and number of threads.

Examples:
    perfcast measure suite
    perfcast measure suite --kernels sort,triad --threads 1 --budget-minutes 1
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared, number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--out", type=Path, default=Path("results/measured"), metavar="FOLDER", help="for host_suite.csv.gz and .json"
    )
    parser.add_argument("--kernels", metavar="NAME,...", help="names of kernels (default: all)")
    parser.add_argument("--threads", metavar="N,...", help="numbers of threads (default: 1, 2, 4, ... and all)")
    parser.add_argument("--budget-minutes", type=number(1e-3, 1e5), default=3.0, metavar="M", help="time budget")
    add_shared(parser, "--seed", seed="seed of contents and order")


def run(options: argparse.Namespace) -> int:
    """Measure, write the table and the description of the machine, and print a summary."""
    from rich.console import Console

    from perfcast.domains.gemm.measured_datasets import measure_suite
    from perfcast.utils.progress import show_progress

    names = {name: getattr(options, name) for name in ("kernels", "threads", "seed")}
    # a drawing thread would disturb measurements, so the bar is drawn only between them
    with show_progress(threaded=False) as show:
        result = measure_suite(
            options.out,
            **names,
            minutes=options.budget_minutes,
            progress=lambda done, total, again: show(f"kernels, {again} repeated", done, total),
        )
    console = Console()
    wide = console if console.is_terminal else Console(width=max(80, 50 + 12 * len(result.thread_counts)))
    for heading, table, reading in result.tables():
        print(f"\n{heading}")
        wide.print(table)
        print(reading, end="\n" if reading else "")
    print("", *result.notes, f"written to {options.out / 'host_suite'}.csv.gz and .json", sep="\n")
    return 0
