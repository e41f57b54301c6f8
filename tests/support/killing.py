"""Kills of pipeline runs at planned moments, and checks of what remains."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import yaml
from small_project import PINNED, call, change, digests, small_project
from small_project import environment as usual_environment

from perfcast.utils.io import TEMPORARY, sha256

# the files that dvc.yaml pins
FILES = ("metrics.json", "report.html")
HEED_SIGNALS = ("env", "--default-signal=HUP,INT,TERM")  # even if the tests themselves run under `nohup` or with `&`
PATIENCE = 1800  # seconds, on a machine with much else to do
_JOB = re.compile(r"^(?:local)?(?:rule|checkpoint) \w+:\n(?: {4}(?!output).*\n)*? {4}output: ([^,\n]+)", re.MULTILINE)


def tiny_project(folder: Path, **params) -> Path:
    """Write a project with one dataset, one split, `nearest` and a network of a few steps, recorded in MLflow."""
    made = small_project(folder, tracking=True, predictors=["nearest", "mlp"], **params)
    change(made, resamples=20)
    path = made / "conf" / "predictor" / "mlp.yaml"
    conf = yaml.safe_load(path.read_text())
    conf["quick"] |= {"epochs": 1, "min_steps": 8}
    path.write_text(yaml.safe_dump(conf, sort_keys=False))
    return made


def results_of(project: Path) -> dict[str, str]:
    """Return the digest of every file that DVC pins, without temporary names."""
    file_hashes = digests(project, *PINNED)
    file_hashes |= {name: sha256(path) for name in FILES if (path := project / "results" / name).exists()}
    return {
        name: file_hashes[name] for name in file_hashes if not any(TEMPORARY.match(part) for part in Path(name).parts)
    }


class Run:
    """Process group of `snakemake` and its jobs, with the start of each job from Snakemake's own log."""

    def __init__(
        self,
        project: Path,
        *arguments: str,
        log: str = "snakemake.log",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.log = project / log
        self._out = self.log.open("w")
        self._folder = project / ".snakemake" / "log"
        self._earlier = {*self._folder.glob("*.log")}
        command = [*HEED_SIGNALS, sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
        variables = usual_environment(project) | dict(environment)
        self.process = subprocess.Popen(
            command, cwd=project, env=variables, stdout=self._out, stderr=self._out, start_new_session=True
        )
        self.began = time.monotonic()
        self.jobs: dict[str, float] = {}

    def poll(self) -> bool:
        """Record started jobs; return whether the run continues."""
        going = self.process.poll() is None
        for job in _JOB.findall(self.details()):
            self.jobs.setdefault(job, time.monotonic() - self.began)
        assert time.monotonic() - self.began < PATIENCE, self.output()[-3000:]
        return going

    def wait(self) -> float:
        """Wait for the end; return how long it took."""
        while self.poll():
            time.sleep(0.02)
        self._out.close()
        return time.monotonic() - self.began

    def kill(self) -> None:
        """End the run and its jobs with SIGKILL."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._out.close()

    def output(self) -> str:
        """Return what the run printed so far."""
        return self.log.read_text()

    def details(self) -> str:
        """Return what Snakemake wrote to its own log so far."""
        return "".join(log.read_text() for log in {*self._folder.glob("*.log")} - self._earlier)


@dataclass(frozen=True)
class Moment:
    """Time after the start of a job, or of the run."""

    job: str | None
    seconds: float


@dataclass(frozen=True)
class Timeline:
    """Start of each job of an undisturbed run, in order, and its duration. Units: seconds."""

    jobs: dict[str, float]
    seconds: float

    def moments(self, count: int, seed: int) -> list[Moment]:
        """Return random moments spread evenly: one in each of `count` equal parts of the run."""
        parts = (np.arange(count) + np.random.default_rng(seed).random(count)) / count
        names, starts = list(self.jobs), list(self.jobs.values())
        chosen = []
        for time_ in parts * self.seconds:
            at = bisect_right(starts, time_) - 1
            chosen.append(Moment(names[at], time_ - starts[at]) if at >= 0 else Moment(None, time_))
        return chosen


def undisturbed(project: Path) -> tuple[Timeline, dict[str, str]]:
    """Run everything; return the timeline and the results."""
    run = Run(project)
    seconds = run.wait()
    assert run.process.returncode == 0, run.output()[-3000:]
    return Timeline(run.jobs, seconds), results_of(project)


def kill_at(project: Path, moment: Moment, order: list[str]) -> Run | None:
    """Start a run and kill it at a moment; return None if it ended before.

    Finished jobs are not repeated: the next job replaces a finished job of the moment.
    """
    run = Run(project)
    later = set(order[order.index(moment.job) :]) if moment.job else set()
    while run.poll():
        started = [run.jobs[job] for job in run.jobs if job in later]
        base = min(started) if started else (0.0 if moment.job is None else None)
        if base is not None and time.monotonic() - run.began >= base + moment.seconds:
            run.kill()
            return run
        time.sleep(0.01)
    run._out.close()
    assert run.process.returncode == 0, run.output()[-3000:]
    return None


def half_written(project: Path, expected: dict[str, str]) -> list[str]:
    """List files under final names that differ from the undisturbed run."""
    return [name for name, digest in results_of(project).items() if expected.get(name) != digest]


def list_leftovers(project: Path) -> list[str]:
    """List Snakemake's locks and incomplete files, and temporary files under results."""
    left = [path for path in (project / "results").rglob(".*") if TEMPORARY.match(path.name)]
    left += list((project / ".snakemake" / "locks").glob("*"))
    left += list((project / ".snakemake" / "incomplete").glob("*"))
    return [str(path.relative_to(project)) for path in left]


def unfinished_records(project: Path) -> list[str]:
    """List the runs that are marked as running in MLflow's store."""
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{project}/results/mlflow/mlflow.db")
    every = [experiments.experiment_id for experiments in client.search_experiments()]
    return [run.info.run_name for run in client.search_runs(every, "attributes.status = 'RUNNING'")]


def assert_whole(project: Path, expected: dict[str, str]) -> None:
    """Check that results equal those of the undisturbed run, without leftovers."""
    assert results_of(project) == expected
    assert list_leftovers(project) == []
    assert unfinished_records(project) == []
    assert "Nothing to be done" in call(project, "snakemake", "--dry-run")


def finish(project: Path, expected: dict[str, str]) -> None:
    """Let a new run end, and check that nothing is lost."""
    assert not half_written(project, expected), "before anything is repaired"
    run = Run(project, log="again.log")
    run.wait()
    assert run.process.returncode == 0, run.output()[-3000:]
    assert_whole(project, expected)
