"""Times of the jobs of a run, and the headline errors of its results."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from perfcast.evaluation import headline, read_evaluation
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

_UNKNOWN = ("-", "NA", "")


@dataclass(frozen=True)
class Job:
    """One job. Units: seconds; `peak` MiB; `start` and `end` seconds since 1970. NaN where it was not sampled."""

    rule: str
    name: str
    seconds: float
    cpu_seconds: float
    peak: float
    end: float

    @property
    def start(self) -> float:
        """Start of the job, seconds since 1970."""
        return self.end - self.seconds


def read_jobs(results: Path, since: float = 0.0) -> list[Job]:
    """Return the last run of every job below a folder of results that ended after `since`."""
    folder = Path(results) / "benchmarks"
    jobs = []
    for path in sorted(folder.rglob("*.tsv")):
        end = path.stat().st_mtime
        if end < since:
            continue
        rule, *wildcards = path.relative_to(folder).with_suffix("").parts
        rows = _read_rows(path)
        if rows:
            seconds, cpu_seconds, peak = (_number(rows[-1].get(name)) for name in ("s", "cpu_time", "max_rss"))
            jobs.append(Job(rule, "/".join(wildcards), seconds, cpu_seconds, peak, end))
    return jobs


def _read_rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t"))
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError("times must be benchmark files of Snakemake", f"{path}: {error}", "delete the file") from None


def by_rule(jobs: Sequence[Job]) -> list[tuple[str, list[Job]]]:
    """Return the jobs of every rule, the rule with the most seconds first."""
    grouped: dict[str, list[Job]] = {}
    for job in jobs:
        grouped.setdefault(job.rule, []).append(job)
    return sorted(grouped.items(), key=lambda pair: -sum(job.seconds for job in pair[1]))


def as_text(jobs: Sequence[Job], longest: int = 5) -> str:
    """Return a table of seconds, CPU seconds and peaks by rule, and the longest jobs."""
    lines = [f"{'rule':14s} {'jobs':>5s} {'seconds':>9s} {'CPU s':>9s} {'peak MiB':>9s}"]
    for rule, members in [*by_rule(jobs), ("all", list(jobs))]:
        seconds = float(sum(job.seconds for job in members if isfinite(job.seconds)))
        cpu_seconds = float(sum(job.cpu_seconds for job in members if isfinite(job.cpu_seconds)))
        peak = max((job.peak for job in members if isfinite(job.peak)), default=0.0)
        lines.append(f"{rule:14s} {len(members):5d} {seconds:9.1f} {cpu_seconds:9.1f} {peak:9.0f}")
    slowest = sorted(jobs, key=lambda job: -job.seconds)[:longest]
    longest_jobs = ", ".join(f"{job.rule} {job.name} {job.seconds:.0f} s" for job in slowest)
    span = max(job.end for job in jobs) - min(job.start for job in jobs)
    return "\n".join(
        [*lines, f"longest: {longest_jobs}", f"from the first job's start to the last one's end: {span:.0f} s"]
    )


def _number(text: str | None) -> float:
    try:
        return float("nan") if text is None or text in _UNKNOWN else float(text)
    except ValueError:
        return float("nan")


def summarize_results(results: Path, titles: Mapping[str, str], preset: str) -> str:
    """Return the summary of a folder of results as text. Raises: UserError when it has none."""
    available = results / "raw" / "available.json"
    if not available.exists():
        raise UserError("there must be results to summarize", f"{results} has none", "run `make run` first")
    datasets = read_object(available, "datasets", "left_out")
    lines = []
    for name in datasets["datasets"]:
        folder = results / "evaluation" / name
        if folder.is_dir():
            lines += [f"\n== {titles.get(name, name)} ({name}) ==", headline(read_evaluation(folder))]
    lines.append(
        "\nMAPE / MedAPE in %, average over the tests of the dataset; predictions are estimates, not official results."
    )
    if preset == "quick" and results.name == "results":
        lines.append("Preset: quick (one seed, short training). `make full` runs the full experiment.")
    for manifest in sorted((results / "raw").glob("*/manifest.json")):
        about = read_object(manifest, "status", "source", "reason", "remedy")
        if about["status"] != "present":
            lines.append(f"left out: source {about['source']}: {about['reason']}; {about['remedy']}")
    for name, absent in datasets["left_out"].items():
        lines.append(f"left out: dataset {name} (needs {', '.join(absent)})")
    return "\n".join(lines)
