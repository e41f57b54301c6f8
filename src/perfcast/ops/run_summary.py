"""Times of the jobs of a run, and the headline errors of its results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from perfcast.evaluation import headline, read_evaluation
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

_NAMES = {"s": "seconds", "cpu_time": "cpu_seconds", "max_rss": "peak"}


def read_jobs(results: Path, since: float = 0.0) -> pd.DataFrame:
    """Return the last run of every job below a folder of results that ended after `since`.

    Returns: one row per job with rule, name, start, end, seconds, cpu_seconds and peak; NaN where it was not sampled.
    Units: seconds, start and end since 1970; peak: MiB.
    """
    folder, jobs = Path(results) / "benchmarks", []
    for path in sorted(folder.rglob("*.tsv")):
        end = path.stat().st_mtime
        rule, *wildcards = path.relative_to(folder).with_suffix("").parts
        try:
            rows = pd.read_csv(path, sep="\t", na_values=["-", "NA"]).rename(columns=_NAMES)
        except ValueError as error:
            fact = f"{path}: {error}"
            raise UserError("times must be benchmark files of Snakemake", fact, "delete the file") from None
        if end >= since and len(rows):
            sampled = rows.reindex(columns=list(_NAMES.values())).iloc[-1].astype(float)
            about = {"rule": rule, "name": "/".join(wildcards), "end": end, "start": end - sampled["seconds"]}
            jobs.append({**about, **sampled})
    return pd.DataFrame(jobs)


def as_text(jobs: pd.DataFrame, longest: int = 5) -> str:
    """Return a table of seconds, CPU seconds and peaks by rule, the longest first, and the longest jobs."""
    lines = [f"{'rule':14s} {'jobs':>5s} {'seconds':>9s} {'CPU s':>9s} {'peak MiB':>9s}"]
    by_rule = sorted(jobs.groupby("rule", sort=False), key=lambda group: -group[1]["seconds"].sum())
    for rule, rows in [*by_rule, ("all", jobs)]:
        seconds, cpu_seconds, peak = rows["seconds"].sum(), rows["cpu_seconds"].sum(), rows["peak"].fillna(0.0).max()
        lines.append(f"{rule:14s} {len(rows):5d} {seconds:9.1f} {cpu_seconds:9.1f} {peak:9.0f}")
    slowest = jobs.nlargest(longest, "seconds")
    longest_jobs = ", ".join(f"{job.rule} {job.name} {job.seconds:.0f} s" for job in slowest.itertuples(index=False))
    span = jobs["end"].max() - jobs["start"].min()
    return "\n".join(
        [*lines, f"longest: {longest_jobs}", f"from the first job's start to the last one's end: {span:.0f} s"]
    )


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
