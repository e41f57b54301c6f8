"""Processor time of commands from their start, beside their budgets, and the slowest imports of each.

Run: python benchmarks/imports.py [--results results] [--repeats 3] [--slowest 5]
Times are user and system seconds of the process, the smallest of several. They are also given as a ratio to the
reference computation of the same machine (benchmarks/reference.py). Imports are those of `python -X importtime`.
`predict` and `train` need a finished run in --results; without one they are left out. Exits 0 whatever it finds.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import reference

_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|( *)(\S+)")


@dataclass(frozen=True)
class Budget:
    """A command and the seconds of processor time that it may take."""

    name: str
    words: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Start:
    """Measured start of a command: seconds, and the seconds of its slowest imports by library."""

    budget: Budget
    seconds: float
    slowest: dict[str, float]

    def line(self, reference_seconds: float) -> str:
        """Return seconds, budget, both ratios, and the slowest libraries."""
        libraries = ", ".join(f"{name} {seconds:.2f}" for name, seconds in self.slowest.items())
        within = "yes" if self.seconds <= self.budget.seconds else "NO"
        return (
            f"{self.budget.name:28s} {self.seconds:6.2f} s  <= {self.budget.seconds:4.1f} {within:4s} "
            f"{self.seconds / reference_seconds:6.3f} of the reference   {libraries}"
        )


def budgets(results: Path, out: Path) -> list[Budget]:
    """Return the commands that can be measured with the files of a run."""
    table, folds = results / "features" / "host_gemm.parquet", results / "splits" / "host_gemm" / "random.parquet"
    measurable = [Budget("perfcast --help", ("--help",), 0.2)]
    if (results / "champion").is_dir():
        machine = ("--processor", "EPYC 9654", "--chips", "2", "--brief", "--results", str(results))
        measurable.append(Budget("perfcast predict, cold", ("predict", *machine), 1.5))
    if table.exists() and folds.exists():
        names = ("dataset=host_gemm", "split=random", "predictor=nearest", "preset=quick")
        words = ("pipeline", "train", *names, f"table={table}", f"folds={folds}", f"out={out}")
        measurable.append(Budget("pipeline train ... nearest", words, 1.5))
    return measurable


def cpu_seconds(command: list[str]) -> float:
    """Return user and system seconds of a process. Raises: CalledProcessError when it fails."""
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def slowest_imports(words: tuple[str, ...], count: int) -> dict[str, float]:
    """Return the seconds that the imports of a command take by library, without those that they import."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "perfcast", *words], check=True, capture_output=True, text=True
    )
    totals: dict[str, float] = {}
    for match in _LINE.finditer(done.stderr):
        library = match[4].partition(".")[0]
        totals[library] = totals.get(library, 0.0) + int(match[1]) / 1e6
    return dict(sorted(totals.items(), key=lambda pair: -pair[1])[:count])


def measure(results: Path, repeats: int, slowest: int) -> list[Start]:
    """Measure every command."""
    with tempfile.TemporaryDirectory() as folder:
        starts = []
        for budget in budgets(results, Path(folder) / "run"):
            command = [sys.executable, "-m", "perfcast", *budget.words]
            try:
                seconds = min(cpu_seconds(command) for _ in range(repeats))
            except subprocess.CalledProcessError as error:
                print(f"not measured: {budget.name}, because it failed: {error.stderr.decode()[-300:]}")
                continue
            starts.append(Start(budget, seconds, slowest_imports(budget.words, slowest)))
        return starts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of a finished run")
    parser.add_argument("--repeats", type=int, default=3, help="starts of a command, of which the fastest counts")
    parser.add_argument("--slowest", type=int, default=5, help="libraries that are listed")
    options = parser.parse_args()
    reference_seconds = reference.measure(options.repeats)
    print(f"reference computation: {reference_seconds:.2f} s of processor time")
    for start in measure(options.results, options.repeats, options.slowest):
        print(start.line(reference_seconds))


if __name__ == "__main__":
    main()
