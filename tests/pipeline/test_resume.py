"""A killed run continues to the results of an undisturbed one; a comment runs nothing; a leak stops a run."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from small_project import REPOSITORY, call, digests, environment, rules_run, run_snakemake, small_project

from perfcast.utils.result_digests import record_digests

pytestmark = pytest.mark.slow
REPRODUCIBLE = ("raw", "standard", "features", "splits", "in_domain", "runs", "evaluation")
PATIENCE = 900  # seconds, on a machine with much else to do


def trained(project):
    """The predictions of the trainings that finished."""
    return sorted(project.glob("results/runs/*/*/*/predictions.parquet"))


def kill_in_the_second_training(project):
    """Start Snakemake with one job at a time and kill its whole process group once it trains for the second time."""
    log = project / "killed.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1"],
            cwd=project,
            env=environment(project),
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + PATIENCE
            logs = project / "results" / "logs" / "train"
            while len([*logs.rglob("*.log")]) < 2 and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == -signal.SIGKILL, log.read_text()[-3000:]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project with code of its own whose run has ended."""
    project = small_project(tmp_path_factory.mktemp("finished") / "project")
    shutil.copytree(REPOSITORY / "src", project / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    call(project, "snakemake")
    return project


@pytest.fixture(scope="module")
def undisturbed(finished):
    return digests(finished, *REPRODUCIBLE)


def copied(finished, folder):
    """Return a copy with the times of all files."""
    call(finished, "cp", "-a", str(finished), str(folder))
    return folder


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    project = small_project(tmp_path_factory.mktemp("killed") / "project")
    kill_in_the_second_training(project)
    return project


def test_killed_run_continues_to_equal_bytes(killed, undisturbed):
    (finished,) = trained(killed)
    written = finished.stat().st_mtime_ns
    again = call(killed, "snakemake")
    assert not {"ingest", "standardize", "features", "split"} & rules_run(again)
    assert "train" in rules_run(again)
    assert len(trained(killed)) == 2
    assert finished.stat().st_mtime_ns == written
    assert digests(killed, *REPRODUCIBLE) == undisturbed
    assert "Nothing to be done" in call(killed, "snakemake")


def test_comment_runs_nothing_and_an_edit_runs_what_depends_on_it(finished, tmp_path):
    folder = copied(finished, tmp_path / "edited")
    code = folder / "src" / "perfcast"
    for name in ("utils/errors.py", "experiment/fitting.py", "sources/ingestion.py"):
        text = (code / name).read_text()
        (code / name).write_text(f"{text}\n# a comment\n")
    assert "Nothing to be done" in call(folder, "snakemake", "--dry-run")
    with (code / "predictors" / "linear.py").open("a") as file:
        file.write("\nMORE = 1\n")
    planned = rules_run(call(folder, "snakemake", "--dry-run"))
    assert {"train", "evaluate"} <= planned
    assert not {"ingest", "standardize", "features", "split"} & planned


def test_planted_leak_stops_the_run_before_evaluation(finished, tmp_path):
    folder = copied(finished, tmp_path / "leaking")
    shutil.rmtree(folder / "results" / "evaluation")
    path = folder / "results" / "runs" / "host_gemm" / "random" / "ridge" / "predictions.parquet"
    frame = pd.read_parquet(path)
    pd.concat([frame, frame.head(3)]).to_parquet(path, index=False)
    code, output = run_snakemake(folder)
    assert code != 0
    assert "predictions.parquet must be as its stage wrote it, but it has changed since" in output
    record_digests(path.parent)  # as a training that leaks does
    code, output = run_snakemake(folder)
    assert code != 0
    (message,) = [line for line in output.splitlines() if line.startswith("perfcast pipeline leakage:")]
    assert "ridge on random: 3 rows are predicted twice" in message
    assert "Traceback" not in output
    assert "{" not in output, "no command line of the job"
    assert ", 1 failed; finished jobs are kept" in output.splitlines()[-1]
    assert not (folder / "results" / "leakage" / "host_gemm.json").exists()
    assert not (folder / "results" / "evaluation").exists()


RIDGE = "runs/host_gemm/random/ridge"
READ = {
    "raw/host_gemm/host_gemm.csv.gz": "standardize",
    "standard/host_gemm.parquet": "split",
    "standard/host_gemm.quality.json": "report",
    "features/host_gemm.parquet": "train",
    "splits/host_gemm/random.parquet": "in_domain",
    "in_domain/host_gemm/random.parquet": "evaluate",
    "leakage/host_gemm.json": "report",
    f"{RIDGE}/validation.json": "champion",
    f"{RIDGE}/predictions.parquet": "leakage",
    f"{RIDGE}/backtest.parquet": "champion",
    "evaluation/host_gemm/summary.json": "plots",
    "champion/host_gemm/about.json": "headline",
    "metrics.json": "headline",
}
"""A rule that reads a result, by the result."""


def kept_results(project):
    return {
        name: digest for name, digest in digests(project, "").items() if not name.startswith(("logs/", "benchmarks/"))
    }


def test_flipped_bit_stops_the_run_before_a_result_is_deleted(finished, tmp_path):
    project = copied(finished, tmp_path / "flipped")
    lost = {}
    for name, rule in READ.items():
        path = project / "results" / name
        content = path.read_bytes()
        path.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
        before = kept_results(project)
        code, output = run_snakemake(project, "--forcerun", rule)
        after = kept_results(project)
        messages = {line for line in output.splitlines() if line.startswith("perfcast:")}
        if code == 0 or after != before or len(messages) != 1 or f"{name} must be as its stage wrote it" not in output:
            lost[name] = code, len(before.items() - after.items()), messages or output[-3000:]
        path.write_bytes(content)
    assert lost == {}
