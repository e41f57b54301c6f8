"""Measure this machine: `perfcast measure gemm` and `perfcast measure suite` write the embedded datasets."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from perfcast.cli import _arguments
from perfcast.utils.errors import UserError

GEMM, SUITE = "host_gemm", "host_suite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of both measurements."""
    parsers = parser.add_subparsers(dest="what", metavar="{gemm,suite}", required=True)
    _add_gemm_arguments(parsers.add_parser("gemm", help="matrix products by size, data type and threads"))
    summary = "memory, caches, compute, sort, compression and branches by size and threads"
    _add_suite_arguments(parsers.add_parser("suite", help=summary, description=f"Measure {summary}."))


def _add_gemm_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("data/embedded"), help=f"folder of {GEMM}.csv.gz and .json")
    parser.add_argument(
        "--configurations",
        type=_arguments.whole(1, 1_000_000),
        default=6000,
        help="distinct configurations (default 6000)",
    )
    parser.add_argument(
        "--budget-minutes", type=_arguments.number(0.001, 100_000), default=20.0, help="time budget (default 20)"
    )
    parser.add_argument(
        "--threads", type=_arguments.whole(1, 4096), default=os.cpu_count() or 1, help="maximum threads (default: all)"
    )
    parser.add_argument("--seed", type=_arguments.seed, default=0, help="seed of sizes and order (default 0)")


def _add_suite_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/measured"),
        help=f"folder of {SUITE}.csv.gz and .json (default %(default)s)",
    )
    parser.add_argument("--kernels", metavar="NAME,...", help="names of kernels (default: all)")
    parser.add_argument("--threads", metavar="N,...", help="numbers of threads (default: 1, 2, 4, ... and all)")
    parser.add_argument("--budget-minutes", type=float, default=3.0, help="time budget (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of contents and order (default 0)")


def run(options: argparse.Namespace) -> int:
    """Measure, write the table and the description of the machine, and print a summary."""
    return _run_suite(options) if options.what == "suite" else _run_gemm(options)


def _run_gemm(options: argparse.Namespace) -> int:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from perfcast.microbench import gemm
    from perfcast.microbench.gemm import require_clean, write_measurement

    configurations = gemm.sample_configurations(options.configurations, max_threads=options.threads, seed=options.seed)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("matrix products", total=len(configurations), note="")

        def show(done: int, total: int, again: int) -> None:
            bar.update(task, completed=done, note=f"{done}/{total}, {again} repeated")

        timings = gemm.measure(
            configurations, budget_seconds=60 * options.budget_minutes, seed=options.seed, progress=show
        )
    frame = gemm.as_frame(timings)
    require_clean(len(frame), len(configurations))
    write_measurement(options.out, GEMM, frame)
    missing = len(configurations) - len(frame)
    print(f"measured {len(frame)} configurations, median spread {100 * frame['seconds_spread'].median():.1f} %")
    if missing:
        print(f"{missing} configurations are missing: beyond {options.budget_minutes:g} minutes, or always interrupted")
    return 0


def _run_suite(options: argparse.Namespace) -> int:
    if not (options.budget_minutes > 0 and math.isfinite(options.budget_minutes)):
        raise UserError("--budget-minutes must be positive", f"got {options.budget_minutes:g}")
    if options.seed < 0:
        raise UserError("--seed must not be negative", f"got {options.seed}")
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from perfcast.microbench import suite
    from perfcast.microbench.gemm import describe_machine, require_clean, write_measurement
    from perfcast.microbench.suite import create_table, list_notes
    from perfcast.microbench.threads import available_cpus, thread_counts

    maximum = len(available_cpus())
    cases = suite.list_cases(
        _parse_kernels(options.kernels, suite.kernel_names()),
        _parse_threads(options.threads, maximum) or thread_counts(maximum),
        l3_kib=describe_machine()["l3_kib"],
        memory=suite.available_memory(),
    )
    if not cases:
        raise UserError("a measurement needs free memory", "the smallest set does not fit into a quarter of it")
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    # redrawn only between measurements: a drawing thread would disturb them
    with Progress(*columns, auto_refresh=False) as bar:
        # the bar shows the time, because repeats use the whole budget
        budget, start = 60 * options.budget_minutes, bar.get_time()
        task = bar.add_task("kernels", total=budget, note="")

        def show(done: int, total: int, again: int) -> None:
            elapsed = min(bar.get_time() - start, 0.99 * budget)
            bar.update(task, completed=elapsed, note=f"{done} of {total}, {again} repeated", refresh=True)

        timings = suite.measure(cases, budget_seconds=budget, seed=options.seed, progress=show)
        bar.update(task, completed=budget, refresh=True)
    frame = suite.as_frame(timings)
    require_clean(len(frame) and int((frame["interrupted"] == 0).sum()), len(cases))
    write_measurement(options.out, SUITE, frame)
    counts = sorted(frame["threads"].unique())
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(80, 50 + 12 * len(counts)))
    for name in dict.fromkeys(frame["kernel"]):
        kernel = suite.load_kernel(name)
        print(f"\n{name}: {kernel.MEANING} ({'sum' if kernel.SHARED else 'mean'} of the threads)")
        console.print(create_table(frame[frame["kernel"] == name], counts))
        if kernel.READING:
            print(kernel.READING)
    print()
    for note in list_notes(frame, len(cases), options.budget_minutes):
        print(note)
    print(f"written to {options.out / SUITE}.csv.gz and .json")
    return 0


def _parse_kernels(text: str | None, known: Sequence[str]) -> list[str]:
    if text is None:
        return list(known)
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else ""
            raise UserError(f"--kernels must name some of {', '.join(known)}", f"got {name!r}", hint)
    if not names:
        raise UserError(f"--kernels must name some of {', '.join(known)}", "it is empty")
    return names


def _parse_threads(text: str | None, maximum: int) -> list[int]:
    """Return the numbers of threads; an empty list without the option."""
    if text is None:
        return []
    try:
        counts = sorted({int(part) for part in text.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1 or counts[-1] > maximum:
        raise UserError(
            f"--threads must be whole numbers from 1 to {maximum}, separated by commas",
            f"got {text!r}",
            f"this process can use {maximum} CPUs" if counts and counts[-1] > maximum else "",
        )
    return counts
