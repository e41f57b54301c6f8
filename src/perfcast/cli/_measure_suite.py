"""`perfcast measure suite`: options, progress, and the table that a person reads."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

NAME = "host_suite"
_INTERRUPTED = "!"
_BUSY = 0.1
"""Cores that other work kept busy, from which on it is told."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/measured"),
        help=f"folder of {NAME}.csv.gz and .json (default %(default)s)",
    )
    parser.add_argument("--kernels", metavar="NAME,...", help="which kernels (default: all)")
    parser.add_argument("--threads", metavar="N,...", help="numbers of threads (default: 1, 2, 4, ... and all)")
    parser.add_argument("--budget-minutes", type=float, default=3.0, help="time budget (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of contents and order (default 0)")


def run(options: argparse.Namespace) -> int:
    """Measure, write the table and the machine's description, and print what was found."""
    if not (options.budget_minutes > 0 and math.isfinite(options.budget_minutes)) or options.seed < 0:
        raise UserError("--budget-minutes must be positive and --seed not negative", "one of them is not")
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from perfcast.measure import suite
    from perfcast.measure.crew import available_cpus
    from perfcast.measure.files import require_clean, write
    from perfcast.measure.machine import describe_machine

    kernels = _kernels(options.kernels, suite.kernel_names())
    threads = _threads(options.threads, len(available_cpus()))
    cases = suite.cases(
        kernels,
        threads or suite.thread_counts(len(available_cpus())),
        l3_kib=describe_machine()["l3_kib"],
        memory=suite.available_memory(),
    )
    if not cases:
        raise UserError("measuring needs some free memory", "the smallest set does not fit into a quarter of it")
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    # redrawn between measurements only: a thread that draws would disturb what is measured
    with Progress(*columns, auto_refresh=False) as bar:
        # the bar is the time: it is spent to the end unless everything is steady before
        budget, begin = 60 * options.budget_minutes, bar.get_time()
        task = bar.add_task("kernels", total=budget, note="")

        def show(done: int, total: int, again: int) -> None:
            spent = min(bar.get_time() - begin, 0.99 * budget)
            bar.update(task, completed=spent, note=f"{done} of {total}, {again} measured again", refresh=True)

        timings = suite.measure(cases, budget_seconds=budget, seed=options.seed, progress=show)
        bar.update(task, completed=budget, refresh=True)
    frame = suite.as_frame(timings)
    require_clean(len(frame) and int((frame["interrupted"] == 0).sum()), len(cases))
    write(options.out, NAME, frame)
    counts = sorted(frame["threads"].unique())
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(80, 50 + 12 * len(counts)))
    for name in dict.fromkeys(frame["kernel"]):
        module = suite.kernel(name)
        how = "threads together" if module.SHARED else "mean of the threads"
        print(f"\n{name}: {module.MEANING} ({how})")
        console.print(as_table(frame[frame["kernel"] == name], counts))
        if hasattr(module, "READING"):
            print(module.READING)
    print()
    for line in notes(frame, len(cases), options.budget_minutes):
        print(line)
    print(f"written to {options.out / NAME}.csv.gz and .json")
    return 0


def _kernels(text: str | None, known: Sequence[str]) -> list[str]:
    if text is None:
        return list(known)
    wanted = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else ""
            raise UserError(f"--kernels must name some of {', '.join(known)}", f"found {name!r}", hint)
    if not wanted:
        raise UserError(f"--kernels must name some of {', '.join(known)}", "it names none")
    return wanted


def _threads(text: str | None, most: int) -> list[int]:
    """Return the numbers asked for; none when none are."""
    if text is None:
        return []
    try:
        counts = sorted({int(part) for part in text.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1 or counts[-1] > most:
        raise UserError(
            f"--threads must be whole numbers from 1 to {most}, separated by commas",
            f"found {text!r}",
            "this process has no more processors than that" if counts and counts[-1] > most else "",
        )
    return counts


def as_table(frame: pd.DataFrame, counts: Sequence[int]) -> Table:
    """Return one kernel's results: a line for each variant and size, a column for each number of threads."""
    from rich.table import Table

    from perfcast.measure import suite

    module = suite.kernel(str(frame["kernel"].iloc[0]))
    unit = getattr(module, "INVERSE", module.UNIT)
    table = Table()
    table.add_column("variant")
    table.add_column("bytes per thread", justify="right")
    for count in counts:
        table.add_column(f"{count} thread{'s' if count > 1 else ''}\n{unit}", justify="right")
    table.add_column("spread\n%", justify="right")
    for (variant, size), rows in frame.groupby(["variant", "bytes"]):
        by_count = rows.set_index("threads")
        cells = [_cell(by_count.loc[[count]].iloc[0], module) if count in by_count.index else "- " for count in counts]
        table.add_row(str(variant), human_bytes(int(str(size))), *cells, f"{100 * rows['seconds_spread'].max():.1f}")
    return table


def _cell(row: pd.Series, module: object) -> str:
    value = 1000 / row["rate"] if hasattr(module, "INVERSE") else row["rate"]
    return f"{value:.4g}{_INTERRUPTED if row['interrupted'] else ' '}"


def human_bytes(size: int) -> str:
    """Return e.g. '64 KiB'."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def notes(frame: pd.DataFrame, wanted: int, minutes: float) -> list[str]:
    """Return what must be known to read the table: what disturbed it, what is missing, what it includes."""
    lines = []
    interrupted = int(frame["interrupted"].sum())
    if interrupted:
        lines.append(
            f"{_INTERRUPTED} other work took the cores meanwhile, every time it was measured: {interrupted} of "
            f"{len(frame)} results, which the data set leaves out"
        )
    load = frame["other_load"].median()
    if load > _BUSY:
        lines.append(
            f"other work kept {load:.1f} cores busy: it shares caches, memory and clock; measure on an idle machine"
        )
    if frame[["waited_share", "stolen_share"]].isna().any(axis=None):
        lines.append("this system does not tell whether other work interrupted the measurements")
    if not frame["pinned"].all():
        lines.append("this system does not let threads choose their core (column pinned)")
    if wanted > len(frame):
        lines.append(f"{wanted - len(frame)} configurations were left out: beyond the {minutes:g} minutes")
    spread = 100 * frame["seconds_spread"].median()
    lines.append(
        f"measured {len(frame)} configurations; spread (interquartile range / median): {spread:.1f} % on median"
    )
    return lines
