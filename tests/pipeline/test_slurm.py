"""The profile for Slurm: real jobs on a cluster of one node give the bytes of a local run."""

import subprocess

import pytest
from slurm_cluster import cluster, missing
from small_project import environment, expect_results_of_a_local_run, rules_run, small_project

pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs the extra: pip install -e '.[slurm]'")
pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(missing()), reason=missing() or "-")]
# nothing here is on a network file system, and jobs take seconds
QUICK = ("--latency-wait", "10", "--slurm-init-seconds-before-status-checks", "5", "--retries", "0")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a project by Slurm; return it, Snakemake's output, and state, processors, memory and time of the jobs."""
    project = small_project(tmp_path_factory.mktemp("slurm") / "project")
    with cluster() as settings:
        variables = {**environment(project), **settings}
        done = subprocess.run(
            ["snakemake", "--profile", "workflow/profiles/slurm", *QUICK],
            check=False, cwd=project, env=variables, capture_output=True, text=True, timeout=1200,
        )  # fmt: skip
        output = done.stdout + done.stderr
        assert done.returncode == 0, output[-6000:]
        output = "".join(log.read_text() for log in (project / ".snakemake" / "log").glob("*.log"))
        command = ["squeue", "--noheader", "--states=all", "--format=%k|%T|%C|%m|%l"]
        listed = subprocess.run(command, check=True, env=variables, capture_output=True, text=True)
    jobs = {comment: values for comment, *values in (line.split("|") for line in listed.stdout.splitlines())}
    return project, output, jobs


def test_all_but_local_jobs_are_queued(run):
    _, output, jobs = run
    assert {state for state, *_ in jobs.values()} == {"COMPLETED"}
    assert {comment.split("_wildcards")[0] for comment in jobs} == {
        "rule_data_features_in_domain_split_standardize",
        "rule_training_train",
        "rule_evaluation_evaluate_leakage_plots",
        "rule_champion",
        "rule_report",
    }
    assert output.count("has been submitted with SLURM jobid") == len(jobs) == 5
    assert {"ingest", "available", "metrics"} <= rules_run(output)


def test_group_requests_sum_of_times_and_memory_of_one_job(run):
    _, _, jobs = run
    assert jobs["rule_training_train"] == ["COMPLETED", "1", "3000M", "1:00:00"]


def test_slurm_results_equal_local_results(run, tmp_path):
    expect_results_of_a_local_run(run[0], tmp_path / "project")
