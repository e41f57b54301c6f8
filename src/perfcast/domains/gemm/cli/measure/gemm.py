"""Measure matrix products by size, data type and threads.

Examples:
    perfcast measure gemm --budget-minutes 5
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from perfcast.cli.arguments import add_shared, number, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/measured"),
        metavar="FOLDER",
        help="for host_gemm.csv.gz and .json",
    )
    parser.add_argument(
        "--configurations",
        type=whole(1, 1_000_000),
        default=6000,
        metavar="N",
        help="distinct configurations",
    )
    parser.add_argument(
        "--budget-minutes",
        type=number(1e-3, 1e5),
        default=20.0,
        metavar="M",
        help="time budget",
    )
    parser.add_argument(
        "--threads",
        type=whole(1, 4096),
        default=os.cpu_count() or 1,
        metavar="N",
        help="maximum threads",
    )
    add_shared(parser, "--seed", seed="seed of sizes and order")


def run(options: argparse.Namespace) -> int:
    """Measure, write the table and the description of the machine, and print a summary."""
    from perfcast.domains.gemm.measured_gemm import measure_gemm
    from perfcast.utils.progress import show_progress

    with show_progress() as show:
        notes = measure_gemm(
            options.out,
            configurations=options.configurations,
            minutes=options.budget_minutes,
            max_threads=options.threads,
            seed=options.seed,
            progress=lambda done, total, again: show(f"matrix products, {again} repeated", done, total),
        )
    print(*notes, f"written to {options.out / 'host_gemm'}.csv.gz and .json", sep="\n")
    return 0
