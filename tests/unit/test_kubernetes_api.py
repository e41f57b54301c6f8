"""What the scripts of the profile for Kubernetes ask a cluster, here a stand-in, and what they say of its answers."""

import subprocess
import sys
import time

import pytest
from kubernetes_cluster import Cluster

PROFILE = "workflow/profiles/kubernetes"
ASKED = ("--threads", "1", "--mem-mb", "100", "--minutes", "1")


@pytest.fixture
def cluster(tmp_path):
    project = tmp_path / "project"
    (project / ".snakemake").mkdir(parents=True)
    (project / ".snakemake" / "snakejob.train.1.sh").write_text("echo made > made.txt")
    with Cluster(tmp_path, project) as found:
        found.scripts = Cluster.profile(project)
        yield found


def say(cluster, *words, **variables):
    """Run a script in the driver's pod; give its exit code, what it printed and its lines."""
    done = subprocess.run(
        [sys.executable, "-E", str(cluster.scripts / "jobs.py"), *words],
        check=False, cwd=cluster.project, env={**cluster.environment(), **variables}, capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.strip(), done.stderr.splitlines()


def submit(cluster, **variables):
    return say(cluster, "submit", *ASKED, str(cluster.project / ".snakemake" / "snakejob.train.1.sh"), **variables)


def until(cluster, name, state):
    for _ in range(100):
        found = say(cluster, "status", name)
        if found[1] != "running":
            break
        time.sleep(0.1)
    assert found[1] == state, found
    return found


def test_a_job_is_submitted_runs_and_is_over(cluster):
    code, name, lines = submit(cluster, PERFCAST_INVOCATION="now")
    assert (code, lines) == (0, [])
    assert until(cluster, name, "success") == (0, "success", [])
    assert (cluster.project / "made.txt").read_text() == "made\n"
    assert cluster.variables[0]["PERFCAST_INVOCATION"] == "now"
    assert "PERFCAST_SERVICE_ACCOUNT" not in cluster.variables[0]


def test_a_submission_whose_answer_was_lost_is_one_job(cluster):
    cluster.lost = 1
    code, name, lines = submit(cluster)
    assert (code, lines, len(cluster.posted)) == (0, [], 1)
    assert list(cluster.jobs) == [name]


def test_two_attempts_are_two_jobs(cluster):
    assert submit(cluster)[1] != submit(cluster)[1]


def test_an_api_that_is_away_fails_no_job(cluster):
    name = submit(cluster)[1]
    cluster.away = 2
    code, said, lines = say(cluster, "status", name)
    assert (code, said) == (0, "running")
    must = f"job {name} must be asked for"
    assert lines == [f"perfcast: {must}, however: the cluster answers 503 the server is starting; it is asked again"]


def test_jobs_that_run_are_looked_at_together(cluster):
    cluster.faults["train"] = ["Running"] * 3 + ["Unschedulable", "ImagePullBackOff"]
    names = [submit(cluster)[1] for _ in range(5)]
    before = len(cluster.asked)
    assert [say(cluster, "status", name)[1] for name in names[:3]] == ["running"] * 3
    assert len(cluster.asked) == before + 3
    for name in names[3:]:  # there is something to say of them
        assert len(say(cluster, "status", name)[2]) == 1
    later = str(time.time() - 6)
    (cluster.project / ".snakemake" / "kubernetes" / "running.list").write_text("\n".join([later, *names]))
    cluster.jobs[names[0]]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert say(cluster, "status", names[0])[1] == "success"


@pytest.mark.parametrize("left", ["", "x", "nan perfcast-none", "9e99 perfcast-none", "\udcff"])
def test_a_broken_note_is_none(cluster, left):
    (cluster.project / ".snakemake" / "kubernetes").mkdir()
    note = cluster.project / ".snakemake" / "kubernetes" / "running.list"
    note.write_bytes(left.encode(errors="surrogateescape"))
    assert say(cluster, "status", "perfcast-none")[1] == "failed"


def test_a_job_that_somebody_deleted_has_failed(cluster):
    code, said, lines = say(cluster, "status", "perfcast-none")
    assert (code, said) == (0, "failed")
    assert lines == ["perfcast: job perfcast-none must end well, however: it was deleted; see kubectl get events"]


def test_what_a_job_waits_for_is_said_once(cluster):
    cluster.faults["train"] = ["Unschedulable"]
    name = submit(cluster)[1]
    first, second = say(cluster, "status", name), say(cluster, "status", name)
    assert first[:2] == second[:2] == (0, "running")
    assert first[2] == [
        f"perfcast: job {name} must start, however: it waits for a place (Unschedulable: 0/3 nodes\\x1b[2J fit); "
        "jobs queue until a node has room"
    ]
    assert second[2] == []
    assert say(cluster, "cancel", name) == (0, "", [])
    assert say(cluster, "cancel", name) == (0, "", [])
    assert until(cluster, name, "failed")[0] == 0


def test_a_wrong_token_is_told_in_a_line(cluster):
    (cluster.account / "token").write_text("another")
    code, said, (line,) = submit(cluster)
    assert (code, said) == (2, "")
    assert "must be able to read its own pod, however: of 'perfcast-7xk2p' the cluster says 401 Unauthorized" in line


def test_a_role_that_lacks_a_verb_is_told_in_a_line(cluster):
    cluster.documents["Role"]["rules"][0]["verbs"].remove("create")
    code, said, (line,) = submit(cluster)
    assert (code, said) == (2, "")
    assert 'however: 403 jobs is forbidden: User "perfcast" cannot create resource "jobs"; see' in line


def test_a_pod_that_does_not_know_its_name_is_told_in_a_line(cluster):
    code, _, (line,) = submit(cluster, POD_NAME="", HOSTNAME="")
    assert code == 2
    assert "the cluster says 404" in line


def test_a_template_with_a_key_that_no_cluster_knows_is_told_in_a_line(cluster):
    pytest.importorskip("kubernetes", reason="needs the client: pip install kubernetes")
    template = cluster.scripts / "job.yaml"
    template.write_text(template.read_text().replace("restartPolicy", "nodeSelektor: {a: b}\n      restartPolicy"))
    code, _, (line,) = submit(cluster)
    assert code == 2
    assert "the cluster must take a job, however: 400 strict decoding error: unknown field" in line


def test_a_server_that_the_authority_does_not_vouch_for_is_told_nothing(cluster, tmp_path):
    from kubernetes_cluster import certificate

    certificate(cluster.account)  # another one than the server has
    before = len(cluster.asked)
    code, said, (line,) = say(cluster, "status", "perfcast-a")
    assert (code, said, len(cluster.asked)) == (0, "running", before)
    assert "CERTIFICATE_VERIFY_FAILED" in line


def test_jobs_of_other_drivers_are_left_alone(cluster):
    cluster.faults["train"] = ["Unschedulable", "Unschedulable"]
    mine, other = submit(cluster)[1], submit(cluster)[1]
    cluster.jobs[other]["metadata"]["labels"]["perfcast/driver"] = "other"
    assert say(cluster, "clear") == (0, "", ["perfcast: 1 job was still running and deleted"])
    assert list(cluster.jobs) == [other]
    assert cluster.deleted == [mine]
