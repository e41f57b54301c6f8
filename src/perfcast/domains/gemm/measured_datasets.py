"""Measurements of this machine, host_gemm and host_suite, from options to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pandas as pd
from rich.table import Table

from perfcast.domains.gemm import measured_gemm as gemm
from perfcast.domains.gemm import measured_suite as suite
from perfcast.domains.gemm.measurement_files import check_out, require_clean, require_device, write_measurement
from perfcast.domains.gemm.timing import thread_counts
from perfcast.microbench.machine import available_cpus, describe_machine
from perfcast.utils.errors import UserError

GEMM, SUITE = "host_gemm", "host_suite"
Progress = Callable[[int, int, int], None]
"""Gets the measured configurations, all configurations, and the repeats."""


def measure_gemm(
    out: Path,
    *,
    configurations: int,
    minutes: float,
    max_threads: int,
    seed: int,
    progress: Progress,
    device: str = "cpu",
) -> list[str]:
    """Measure matrix products, write the table and the description of the machine, and return notes for the user.

    Args:
        out: Folder of host_gemm.csv.gz and host_gemm.json.
        configurations: Distinct configurations.
        minutes: Time budget.
        max_threads: Threads of a product at most, on a CPU.
        seed: Seed of sizes and order.
        progress: Gets the measured configurations, all configurations, and the repeats.
        device: cpu or cuda.

    Raises:
        UserError: The device is absent, or other work interrupts every configuration.
    """
    require_device(device)
    check_out(out, GEMM)
    threads, largest = max_threads if device == "cpu" else 1, gemm.LARGEST[device]
    samples = gemm.sample_configurations(configurations, max_threads=threads, seed=seed, largest=largest)
    timings = gemm.measure(samples, budget_seconds=60 * minutes, seed=seed, device=device, progress=progress)
    frame = gemm.as_frame(timings)
    require_clean(len(frame), len(samples))
    write_measurement(out, GEMM, frame, device)
    notes = [f"measured {len(frame)} configurations, median spread {100 * frame['seconds_spread'].median():.1f} %"]
    if missing := len(samples) - len(frame):
        notes.append(f"{missing} configurations are missing: not reached, or always interrupted")
    return notes


@dataclass(frozen=True)
class SuiteResult:
    """Measured kernels: one row per configuration, and notes for the user."""

    frame: pd.DataFrame
    notes: list[str]

    @property
    def thread_counts(self) -> list[int]:
        """Measured numbers of threads."""
        return sorted(self.frame["threads"].unique())

    def tables(self) -> Iterator[tuple[str, Table, str]]:
        """Yield the heading, the table and the reading aid of every kernel."""
        for name in dict.fromkeys(self.frame["kernel"]):
            kernel = suite.load_kernel(name)
            heading = f"{name}: {kernel.MEANING} ({'sum' if kernel.SHARED else 'mean'} of the threads)"
            rows = self.frame[self.frame["kernel"] == name]
            yield heading, suite.create_table(rows, self.thread_counts), kernel.READING


def measure_suite(
    out: Path, *, kernels: str | None, threads: str | None, minutes: float, seed: int, progress: Progress
) -> SuiteResult:
    """Measure kernels, write the table and the description of the machine.

    `kernels` and `threads` are typed lists, None for all. Raises: UserError for a list that names no kernel or number
    of threads, without free memory, and when other work interrupts every configuration.
    """
    check_out(out, SUITE)
    maximum = len(available_cpus())
    cases = suite.list_cases(
        parse_kernels(kernels, suite.kernel_names()),
        parse_threads(threads, maximum) or thread_counts(maximum),
        l3_kib=describe_machine()["l3_kib"],
        memory=suite.available_memory(),
    )
    if not cases:
        fact = "the smallest set does not fit into a quarter of it"
        raise UserError("the free memory must hold a measurement", fact, "end other programs, or lower --threads")
    frame = suite.as_frame(suite.measure(cases, budget_seconds=60 * minutes, seed=seed, progress=progress))
    require_clean(len(frame) and int((frame["interrupted"] == 0).sum()), len(cases))
    write_measurement(out, SUITE, frame)
    return SuiteResult(frame, suite.list_notes(frame, len(cases)))


def parse_kernels(text: str | None, known: Sequence[str]) -> list[str]:
    """Return the kernels of a typed list, all without one. Raises: UserError for an unknown or no name."""
    if text is None:
        return list(known)
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else ""
            raise UserError(f"--kernels must name some of {', '.join(known)}", f"it is {name!r}", hint)
    if not names:
        raise UserError(f"--kernels must name some of {', '.join(known)}", "it is empty")
    return names


def parse_threads(text: str | None, maximum: int) -> list[int]:
    """Return the numbers of threads of a typed list, none without one. Raises: UserError beyond 1 to `maximum`."""
    if text is None:
        return []
    try:
        counts = sorted({int(part) for part in text.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1 or counts[-1] > maximum:
        raise UserError(
            f"--threads must be whole numbers from 1 to {maximum}, separated by commas",
            f"it is {text!r}",
            f"this process can use {maximum} CPUs" if counts and counts[-1] > maximum else "",
        )
    return counts
