"""Time that a run still takes, from the processor seconds that its jobs took in an earlier run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

PINNED = Path("results/performance/jobs/cpu_seconds.csv")
"""CPU seconds of the jobs of the default run, as `python benchmarks/pipeline.py --pin` writes them."""
_PRIOR_SECONDS = 20.0
"""The first jobs take seconds and say little on the speed of this machine: the pinned seconds count so much besides."""


def read_pinned(path: Path = PINNED) -> dict[str, float]:
    """Return the CPU seconds of jobs by title, such as `train host_gemm random ridge`; none without the file."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row["job"]: float(row["cpu_seconds"]) for row in csv.DictReader(file)}


class TimeLeft:
    """Estimate of the time left, in which a job counts by its pinned seconds and not as one of many equal ones.

    The finished jobs tell how much slower this machine is than the pinned seconds, and how many jobs run at once.
    """

    def __init__(self, pinned: Mapping[str, float]) -> None:
        self.pinned = pinned
        self.planned: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self.finished: dict[str, float] = {}

    def plan(self, jobs: Iterable[str]) -> None:
        """Take the titles of all jobs of the run."""
        self.planned = {job: self.expected(job) for job in jobs}

    def start(self, job: str, now: float) -> None:
        """Take the start of a job."""
        self.planned.setdefault(job, self.expected(job))
        self.running[job] = now

    def finish(self, job: str, now: float) -> None:
        """Take the end of a job."""
        self.finished[job] = now - self.running.pop(job, now)

    def expected(self, job: str) -> float:
        """Return the pinned seconds of a job, else the mean of its likes: rule and predictor, or rule.

        A rule without pinned jobs has no benchmark, because its jobs are short.
        """
        if job in self.pinned:
            return self.pinned[job]
        rule, *words = job.split()
        of_rule = [name for name in self.pinned if name.split()[0] == rule]
        alike = [name for name in of_rule if words and name.split()[-1] == words[-1]]
        return fmean([self.pinned[name] for name in alike or of_rule] or [1.0])

    def seconds(self, now: float, began: float, total: int) -> float | None:
        """Return the time left of `total` jobs, None before the first one is finished. Units: seconds."""
        if not self.finished or now <= began:
            return None
        done = sum(self.planned[job] for job in self.finished)
        spent = sum(self.finished.values())
        slowness = (spent + _PRIOR_SECONDS) / (done + _PRIOR_SECONDS)
        remaining = {job: seconds for job, seconds in self.planned.items() if job not in self.finished}
        active = 0.0
        for job, start in self.running.items():
            active += now - start
            remaining[job] = max(self.planned[job] - (now - start) / slowness, 0.0)
        # jobs that a checkpoint adds later are as long as the planned ones
        added = max(total - len(self.planned), 0) * fmean(self.planned.values())
        at_once = max((spent + active) / (now - began), 1.0)
        # however many run at once, a job runs on one core
        return slowness * max((sum(remaining.values()) + added) / at_once, *remaining.values(), 0.0)
