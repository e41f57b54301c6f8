"""The profile for Kubernetes: jobs of a stand-in for a cluster give the bytes of a local run, and fail in a line."""

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager, suppress

import pytest
from kubernetes_cluster import Cluster, prepare, snakemake
from small_project import environment, expect_results_of_a_local_run, rules_run, small_project

pytest.importorskip("snakemake_executor_plugin_cluster_generic", reason="needs pip install -e '.[kubernetes]'")
pytestmark = pytest.mark.kubernetes
# nothing here is on a network file system, and jobs take seconds
RULES = sorted(
    [
        "data_features_split_standardize_support",
        "training_train",
        "judging_audit_evaluate_figures",
        "champion",
        "report",
    ]
)
QUICK = ("--latency-wait", "10", "--seconds-between-status-checks", "1", "--retries", "0")
TINY = """
rule all:
    input:
        expand("results/{name}.txt", name=config.get("names", "quick").split("+")),


rule quick:
    output:
        "results/quick.txt",
    threads: 2
    resources:
        mem_mb=lambda wildcards, attempt: 100 * attempt,
        runtime=7,
    shell:
        "echo made > {output}"


rule slow:
    output:
        "results/{name}.txt",
    wildcard_constraints:
        name="slow.*",
    resources:
        mem_mb=100,
        runtime=7,
    shell:
        "echo $$ > results/{wildcards.name}.pid && exec sleep 300"


localrules:
    all,
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A project run in jobs of the cluster, what Snakemake said, and the cluster."""
    folder = tmp_path_factory.mktemp("kubernetes")
    project = small_project(folder / "project")
    with Cluster(folder, project) as cluster:
        cleared = prepare(cluster)
        assert (cleared.returncode, cleared.stdout, cleared.stderr) == (0, "", "")
        done = subprocess.run(
            snakemake(cluster, *QUICK),
            check=False, cwd=project, env=cluster.environment(), capture_output=True, text=True, timeout=1800,
        )  # fmt: skip
        said = done.stdout + done.stderr
        told = "".join(cluster.said(job["metadata"]["name"])[-3000:] for job in cluster.posted)
        assert done.returncode == 0, said[-6000:] + told
        yield project, said, cluster


def test_every_job_but_the_local_ones_was_one_of_the_cluster(run):
    _, said, cluster = run
    assert sorted(job["metadata"]["labels"]["perfcast/rule"] for job in cluster.posted) == RULES
    assert {"ingest", "available", "metrics"} <= rules_run(said)
    assert not cluster.deleted


def test_a_group_asks_for_the_sum_of_the_times_and_the_memory_of_one_job(run):
    _, _, cluster = run
    (job,) = [one for one in cluster.posted if one["metadata"]["labels"]["perfcast/rule"] == "training_train"]
    pod = job["spec"]["template"]["spec"]
    assert pod["activeDeadlineSeconds"] == 2 * 30 * 60
    assert pod["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "3000M"},
        "limits": {"memory": "3000M"},
    }


def test_jobs_belong_to_one_invocation_and_hold_the_file_of_the_run(run):
    project, _, cluster = run
    for name in ("PERFCAST_INVOCATION", "PERFCAST_JOBS"):
        assert len({variables[name] for variables in cluster.variables}) == 1
    assert cluster.variables[0]["PERFCAST_JOBS"] == str(project / ".snakemake/runs/results.jobs")


def test_results_are_those_of_a_local_run(run, tmp_path):
    expect_results_of_a_local_run(run[0], tmp_path / "project")


@pytest.fixture
def tiny(tmp_path):
    """A cluster with a project of one rule that takes no time and one that takes long."""
    project = tmp_path / "project"
    Cluster.profile(project)
    (project / "Snakefile").write_text(TINY)
    with Cluster(tmp_path, project, places=4) as cluster:
        yield cluster


def finish(cluster, *options):
    done = subprocess.run(
        snakemake(cluster, *QUICK, *options),
        check=False, cwd=cluster.project, env=cluster.environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    return done.returncode, [line for line in said.splitlines() if line.startswith("perfcast: ")], said


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("exit 1", r"must end well, however: its command ended with exit code 1; see kubectl logs job/\S+"),
        (
            "OOMKilled",
            r"must end well, however: it was killed for its memory at its limit of 100M \(OOMKilled\); raise .*",
        ),
        (
            "ImagePullBackOff",
            r"must start, however: it cannot start \(ImagePullBackOff: Back-off pulling .*\); see image.*",
        ),
    ],
)
def test_a_job_that_fails_is_told_in_a_line_and_fails_the_run(tiny, fault, why):
    tiny.faults["quick"] = [fault]
    code, lines, said = finish(tiny)
    assert code == 1, said
    assert len(lines) == 1, said
    assert re.fullmatch(rf"perfcast: job perfcast-quick-[0-9a-f]{{10}} {why}", lines[0])
    assert not (tiny.project / "results" / "quick.txt").exists()
    if fault == "ImagePullBackOff":
        assert tiny.jobs == {}, "it would start one day, beside its next attempt"


def test_a_job_killed_for_its_memory_asks_for_more_under_another_name(tiny):
    tiny.faults["quick"] = ["OOMKilled", "Evicted"]
    code, lines, said = finish(tiny, "--retries", "2")
    assert code == 0, said
    assert len(lines) == 2
    assert "Evicted: The node was low on resource: memory." in lines[1]
    assert len({job["metadata"]["name"] for job in tiny.posted}) == 3
    pods = [job["spec"]["template"]["spec"] for job in tiny.posted]
    assert [pod["containers"][0]["resources"]["limits"]["memory"] for pod in pods] == ["100M", "200M", "300M"]
    assert {(pod["containers"][0]["resources"]["requests"]["cpu"], pod["activeDeadlineSeconds"]) for pod in pods} == {
        ("2", 420)
    }


@contextmanager
def started(cluster, count):
    """Start a run of slow jobs and wait until all of them work; give Snakemake and the jobs' processes."""
    names = [f"slow{number}" for number in range(count)]
    process = subprocess.Popen(
        snakemake(cluster, *QUICK, "--config", f"names={'+'.join(names)}"),
        cwd=cluster.project, env=cluster.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        files = [cluster.project / "results" / f"{name}.pid" for name in names]
        deadline = time.monotonic() + 200
        while not all(file.exists() and file.read_text() for file in files):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield process, [int(file.read_text()) for file in files]
    finally:
        kill(process)


def kill(process):
    """Kill Snakemake and all that it started, at once, as when the node of its pod is gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)


def alive(pids):
    found = subprocess.run(
        ["ps", "-o", "pid=", "-p", ",".join(map(str, pids))], check=False, capture_output=True, text=True
    )
    return found.stdout.split()


@pytest.mark.parametrize("pause", [0, 0.5])
def test_ctrl_c_deletes_the_jobs(tiny, pause):
    """Whether or not Snakemake asks for the jobs' status at that moment, when it knows of none."""
    with started(tiny, 2) as (process, pids):
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=100)
        assert process.returncode != 0
        assert tiny.jobs == {}, said
        assert sorted(set(tiny.deleted)) == sorted(job["metadata"]["name"] for job in tiny.posted)
        assert not alive(pids)
        assert "Traceback" not in said


def test_what_a_killed_driver_left_is_deleted_before_the_next(tiny):
    with started(tiny, 1) as (process, pids):
        kill(process)
        assert len(tiny.jobs) == 1
        assert alive(pids)
        cleared = prepare(tiny)
        assert (cleared.returncode, cleared.stdout) == (0, "")
        assert cleared.stderr == "perfcast: 1 job was still running and deleted\n"
        assert tiny.jobs == {}
        assert not alive(pids)


def test_the_next_driver_goes_on_after_a_killed_one(tmp_path):
    project = small_project(tmp_path / "project")
    table = "results/features/host_gemm.parquet"
    with Cluster(tmp_path, project) as cluster:
        said = (tmp_path / "said.txt").open("w")
        process = subprocess.Popen(
            snakemake(cluster, *QUICK, table),
            cwd=project, env=cluster.environment(), stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 300
            while not cluster.variables:
                assert process.poll() is None, (tmp_path / "said.txt").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.2)
        finally:
            kill(process)
        assert list((project / ".snakemake" / "locks").glob("*.lock"))
        assert prepare(cluster).stderr == "perfcast: 1 job was still running and deleted\n"
        code, lines, said = finish(cluster, table)
        assert code == 0, said
        assert re.fullmatch(
            r"perfcast: the run of .* was killed; .*its lock removed, this one goes on from there", lines[0]
        )
        assert (project / table).is_file()


def test_jobs_outlive_an_api_that_is_away_for_a_moment(tiny):
    tiny.away = 3
    code, lines, said = finish(tiny)
    assert (code, lines) == (0, []), said


def test_outside_of_a_cluster_there_is_a_line_and_no_traceback(tiny):
    done = subprocess.run(
        snakemake(tiny, *QUICK),
        check=False, cwd=tiny.project, env=environment(tiny.project), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert "must be used in a pod with a service account, however: KUBERNETES_SERVICE_HOST is not set" in said
    assert "Traceback" not in said
