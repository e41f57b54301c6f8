"""Measure operators: products, attention, mixtures of experts.

Examples:
    perfcast measure operators --budget-minutes 5 --out results/measured
    perfcast measure operators --device cuda --out results/measured
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
        help="for host_operators.csv.gz, .json",
    )
    parser.add_argument(
        "--shapes", type=whole(4, 1_000_000), default=2000, metavar="N", help="shapes of all operators together"
    )
    parser.add_argument("--budget-minutes", type=number(1e-3, 1e5), default=20.0, metavar="M", help="time budget")
    parser.add_argument("--threads", type=whole(1, 4096), default=os.cpu_count() or 1, metavar="N", help="threads")
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        help="number format (default: bfloat16 where the device has units for it, else float32)",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where operators run")
    add_shared(parser, "--seed", seed="seed of shapes and order")


def run(options: argparse.Namespace) -> int:
    """Measure, write the table and the description of the machine, and print a summary."""
    from perfcast.domains.gemm.measured_operators import measure_operators
    from perfcast.utils.progress import show_progress

    with show_progress() as show:
        notes = measure_operators(
            options.out,
            shapes=options.shapes,
            minutes=options.budget_minutes,
            threads=options.threads,
            dtype=options.dtype,
            device=options.device,
            seed=options.seed,
            progress=lambda done, total, again: show(f"operators, {again} repeated", done, total),
        )
    print("\n".join(notes))
    return 0
