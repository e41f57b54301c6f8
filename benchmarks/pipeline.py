"""Time and memory of the pipeline, as ratios to its budgets.

Run: python benchmarks/pipeline.py [--results results] [--cores 2] [--recorded] [--pin]
Reads the benchmark files that the last run of Snakemake left, then measures a run that finds nothing to do, the
start-up of a command, and the training of the network. Processor times are also given as ratios to the reference
computation of this machine (benchmarks/reference.py). With --recorded nothing else is measured. With --pin the
processor times of the jobs are written to results/performance/jobs/cpu_seconds.csv, from which a run tells the time
that is left. Exits 0 whatever it finds.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import reference

from perfcast.utils.time_left import PINNED

RUN_SECONDS, RUN_MIB = 15 * 60, 4 * 1024
RUN_CPU_SECONDS, DATA_SECONDS, NOTHING_TO_DO_SECONDS = 500, 40, 4
ROWS_PER_CPU_SECOND, PUBLISHED_ROWS_PER_CPU_SECOND = 2500, 54
LOOP_RATIO = 1.1
DATA_RULES, DATASET = ("ingest", "standardize", "features"), "spec_cpu2017"
REPEATS = 3
FREQUENT_SECONDS, RARE_SECONDS = 15, 30


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
        rows = pd.read_csv(path, sep="\t", na_values=["-", "NA"]).rename(columns=_NAMES)
        if end >= since and len(rows):
            sampled = rows.reindex(columns=list(_NAMES.values())).iloc[-1].astype(float)
            sampled["cpu_seconds"] = until_the_end(sampled["cpu_seconds"], sampled["seconds"])
            about = {"rule": rule, "name": "/".join(wildcards), "end": end, "start": end - sampled["seconds"]}
            jobs.append({**about, **sampled})
    return pd.DataFrame(jobs)


def until_the_end(cpu_seconds: float, seconds: float) -> float:
    """Return the processor time of a whole job.

    Snakemake samples it twice a second for 15 s, then each 30 s: a job of 44 s has that of its first 15 s alone.
    """
    if seconds <= FREQUENT_SECONDS:
        return cpu_seconds
    sampled = seconds - (seconds - FREQUENT_SECONDS) % RARE_SECONDS
    return cpu_seconds * seconds / sampled


def pin_jobs(jobs: pd.DataFrame, path: Path) -> None:
    """Write the processor time of each job to a CSV file, by rule and wildcards."""
    titles = jobs["rule"] + " " + jobs["name"].str.replace("/", " ")
    titles = titles.str.replace(
        r"^train (\S+ rolling_)", r"roll \1", regex=True
    )  # their benchmarks are beside trainings
    # a job below the first sample took a fraction of a second
    pinned = pd.DataFrame({"job": titles.str.strip(), "cpu_seconds": jobs["cpu_seconds"].fillna(0.3).round(1)})
    pinned.sort_values("job").to_csv(path, index=False, lineterminator="\n")


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


@dataclass(frozen=True)
class Measurement:
    """One measured value and its budget."""

    what: str
    measured: float
    unit: str
    budget: float | None = None
    at_least: bool = False

    def line(self) -> str:
        text = f"{self.what:56s} {self.measured:9.2f} {self.unit:8s}"
        if self.budget is None:
            return text
        within = self.measured >= self.budget if self.at_least else self.measured <= self.budget
        sign = ">=" if self.at_least else "<="
        return f"{text} {sign} {self.budget:6g} {self.measured / self.budget:8.2f}  {'yes' if within else 'NO'}"


def peak_together(jobs: pd.DataFrame) -> float:
    """Return the largest sum of the peaks of jobs that ran at the same time: an upper bound of the memory used."""
    return max(jobs.loc[(jobs["start"] <= start) & (start < jobs["end"]), "peak"].sum() for start in jobs["start"])


def recorded(jobs: pd.DataFrame, cores: int, reference_seconds: float) -> list[Measurement]:
    data = jobs[jobs["rule"].isin(DATA_RULES) & (jobs["name"] == DATASET)]
    span = jobs["end"].max() - jobs["start"].min()
    cpu_seconds = jobs["cpu_seconds"].sum()
    return [
        Measurement("run: processor time of the jobs", cpu_seconds, "s", RUN_CPU_SECONDS),
        Measurement("  beside the reference computation", cpu_seconds / reference_seconds, "times"),
        Measurement(f"run: job seconds / {cores} cores", jobs["seconds"].sum() / cores, "s", RUN_SECONDS),
        Measurement("run: first start to last end, pauses included", span, "s", RUN_SECONDS),
        Measurement("run: memory, peaks of simultaneous jobs added", peak_together(jobs), "MiB", RUN_MIB),
        Measurement(f"ingestion + standardization + features of {DATASET}", data["seconds"].sum(), "s", DATA_SECONDS),
    ]


def seconds_of(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def nothing_to_do(results: Path) -> list[Measurement]:
    snakemake = shutil.which("snakemake", path=Path(sys.executable).parent) or "snakemake"
    command = [snakemake, "--config", f"results={results}"]
    # A plain call would start the jobs that are left, which is another measurement.
    planned = subprocess.run([*command, "--dry-run"], check=False, capture_output=True, text=True)
    if planned.returncode != 0 or "Nothing to be done" not in planned.stdout + planned.stderr:
        print("not measured: snakemake with nothing to do, because jobs are left; finish the run first")
        return []
    try:
        measured = seconds_of(command)
    except subprocess.CalledProcessError as error:
        print(f"not measured: snakemake with nothing to do, because it failed: {error.stderr.decode()[-300:]}")
        return []
    return [Measurement("snakemake with nothing to do", measured, "s", NOTHING_TO_DO_SECONDS)]


def start_up() -> list[Measurement]:
    commands = {
        "start-up of `perfcast pipeline standardize` (--help)": ["-m", "perfcast", "pipeline", "standardize", "--help"],
        "start-up of Python alone": ["-c", "pass"],
    }
    return [
        Measurement(
            f"{what}, best of {REPEATS}", min(seconds_of([sys.executable, *arguments]) for _ in range(REPEATS)), "s"
        )
        for what, arguments in commands.items()
    ]


def throughput() -> list[Measurement]:
    script = Path(__file__).with_name("ncpp_throughput.py")
    done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True)
    rates = re.findall(r"^  Lightning +(\d+) rows per CPU-second$", done.stdout, re.MULTILINE)
    ratios = re.findall(r"^  time / plain loop +([\d.]+) ", done.stdout, re.MULTILINE)
    if len(rates) != 3 or len(ratios) != 3:
        print(f"not measured: training, because {script.name} failed: {done.stderr[-300:]}")
        return []
    speed = float(rates[0])
    return [
        Measurement("ncpp: rows trained per CPU-second", speed, "rows/s", ROWS_PER_CPU_SECOND, at_least=True),
        Measurement("  beside the published code", speed, "rows/s", PUBLISHED_ROWS_PER_CPU_SECOND, at_least=True),
        *[
            Measurement(f"{name}: training time beside a plain torch loop", float(ratio), "", LOOP_RATIO)
            for name, ratio in zip(("ncpp", "group_pooling", "mlp"), ratios, strict=True)
        ],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the run")
    parser.add_argument("--cores", type=int, default=2, help="cores the run had")
    parser.add_argument("--recorded", action="store_true", help="read the benchmark files only, measure nothing")
    parser.add_argument("--pin", action="store_true", help="write them to results/performance/jobs/cpu_seconds.csv")
    options = parser.parse_args()
    measurements: list[Measurement] = []
    jobs = read_jobs(options.results)
    if jobs.empty:
        print(f"no run is recorded in {options.results}/benchmarks; `make run` leaves one")
    else:
        print(as_text(jobs))
        if options.pin:
            pin_jobs(jobs, PINNED)
        reference_seconds = reference.measure()
        measurements.append(Measurement("reference computation: processor time", reference_seconds, "s"))
        measurements += recorded(jobs, options.cores, reference_seconds)
    if not options.recorded:
        measurements += [*nothing_to_do(options.results), *start_up(), *throughput()]
    print(f"\n{'measurement':56s} {'measured':>9s} {'':8s} {'budget':>9s} {'ratio':>8s}  within")
    for measurement in measurements:
        print(measurement.line())
    print("ratio = measured / budget; '<=' must be at most 1, '>=' at least 1")


if __name__ == "__main__":
    main()
