"""Measure how much workloads on one machine slow each other down.

Every run measures two or three workloads alone, together, and alone again, with
the system's metrics of every second. A campaign that was stopped resumes.

Examples:
    perfcast measure interference --budget-minutes 120 --out data/embedded
    perfcast measure interference --workloads sort,key_value --budget-minutes 5
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared, number, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/measured"),
        metavar="FOLDER",
        help="for host_interference.parquet and .json, and the finished runs",
    )
    parser.add_argument("--budget-minutes", type=number(1e-3, 1e5), default=120.0, metavar="M", help="time budget")
    parser.add_argument(
        "--seconds-per-run", type=whole(4, 3600), default=24, metavar="S", help="seconds that workloads run together"
    )
    parser.add_argument("--workloads", metavar="NAME,...", help="names of workloads (default: all)")
    add_shared(parser, "--seed", seed="seed of contents and order")


def run(options: argparse.Namespace) -> int:
    """Measure, write the table and the description of the machine, and print a summary."""
    from perfcast.domains.interference.measuring.campaign import measure_interference
    from perfcast.domains.interference.measuring.scenarios import PLACEMENTS, Design
    from perfcast.domains.interference.measuring.workloads import parse_workloads
    from perfcast.utils.progress import show_progress

    workloads = tuple(parse_workloads(options.workloads))
    design = Design(workloads, tuple(PLACEMENTS), options.seed, options.seconds_per_run)
    # a drawing thread would disturb measurements, so the bar is drawn only between runs
    with show_progress(threaded=False) as show:
        notes = measure_interference(options.out, design, options.budget_minutes, show)
    print("\n".join(notes), f"written to {options.out / 'host_interference'}.parquet and .json", sep="\n")
    return 0
