"""Measure this machine: `perfcast measure gemm` makes the embedded data set anew."""

from __future__ import annotations

import argparse
import gzip
import os
from pathlib import Path

from perfcast.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("what", choices=["gemm"], help="gemm: matrix products by size, data type and threads")
    parser.add_argument("--out", type=Path, default=Path("data/embedded"), help="folder of host_gemm.csv.gz and .json")
    parser.add_argument("--configurations", type=int, default=6000, help="distinct configurations (default 6000)")
    parser.add_argument("--budget-minutes", type=float, default=20.0, help="time budget (default 20)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="most threads (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="seed of sizes and order (default 0)")


def run(options: argparse.Namespace) -> int:
    """Measure and write the table and the machine's description."""
    if options.configurations < 1 or options.budget_minutes <= 0 or options.threads < 1:
        raise UserError("--configurations, --budget-minutes and --threads must be positive", "one of them is not")
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from perfcast.io import atomic_path, write_json
    from perfcast.measure import gemm
    from perfcast.measure.machine import describe_machine

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
    if frame.empty:
        raise UserError(
            "measuring needs a core to itself",
            f"other work interrupted every one of {len(configurations)} configurations",
            "try again on an idle machine, or with a larger --budget-minutes",
        )
    with atomic_path(options.out / "host_gemm.csv.gz") as path:
        # no file name and no time in the header: equal tables give equal bytes
        path.write_bytes(gzip.compress(frame.to_csv(index=False, lineterminator="\n").encode(), mtime=0))
    write_json(options.out / "host_gemm.json", describe_machine())
    left = len(configurations) - len(frame)
    print(f"measured {len(frame)} configurations, median spread {100 * frame['seconds_spread'].median():.1f} %")
    if left:
        print(
            f"{left} configurations were left out: beyond the {options.budget_minutes:g} minutes, or always interrupted"
        )
    return 0
