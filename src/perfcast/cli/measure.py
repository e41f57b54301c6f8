"""Measure this machine: `perfcast measure gemm` and `perfcast measure suite` make the embedded data sets anew."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from perfcast.cli import _numbers
from perfcast.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of both measurements."""
    from perfcast.cli import _measure_suite

    whats = parser.add_subparsers(dest="what", metavar="{gemm,suite}", required=True)
    _add_gemm(whats.add_parser("gemm", help="matrix products by size, data type and threads"))
    summary = "memory, caches, compute, sort, compression and branches by size and threads"
    _measure_suite.add_arguments(whats.add_parser("suite", help=summary, description=f"Measure {summary}."))


def _add_gemm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("data/embedded"), help="folder of host_gemm.csv.gz and .json")
    parser.add_argument(
        "--configurations",
        type=_numbers.whole(1, 1_000_000),
        default=6000,
        help="distinct configurations (default 6000)",
    )
    parser.add_argument(
        "--budget-minutes", type=_numbers.number(0.001, 100_000), default=20.0, help="time budget (default 20)"
    )
    parser.add_argument(
        "--threads", type=_numbers.whole(1, 4096), default=os.cpu_count() or 1, help="most threads (default: all)"
    )
    parser.add_argument("--seed", type=_numbers.seed, default=0, help="seed of sizes and order (default 0)")


def run(options: argparse.Namespace) -> int:
    """Measure and write the table and the machine's description."""
    if options.what == "suite":
        from perfcast.cli import _measure_suite

        return _measure_suite.run(options)
    return _run_gemm(options)


def _run_gemm(options: argparse.Namespace) -> int:
    if options.configurations < 1 or options.budget_minutes <= 0 or options.threads < 1:
        raise UserError("--configurations, --budget-minutes and --threads must be positive", "one of them is not")
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from perfcast.measure import gemm
    from perfcast.measure.files import require_clean, write

    configurations = gemm.sample_configurations(options.configurations, max_threads=options.threads, seed=options.seed)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("matrix products", total=len(configurations), note="")

        def show(done: int, total: int, again: int) -> None:
            bar.update(task, completed=done, note=f"{done}/{total}, {again} measured again")

        timings = gemm.collect(
            configurations, budget_seconds=60 * options.budget_minutes, seed=options.seed, progress=show
        )
    frame = gemm.as_frame(timings)
    require_clean(len(frame), len(configurations))
    write(options.out, "host_gemm", frame)
    left = len(configurations) - len(frame)
    print(f"measured {len(frame)} configurations, median spread {100 * frame['seconds_spread'].median():.1f} %")
    if left:
        print(
            f"{left} configurations were left out: beyond the {options.budget_minutes:g} minutes, or always interrupted"
        )
    return 0
