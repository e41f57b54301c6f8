"""The scripts of the profile for Kubernetes: what a job is like, what became of it, and one line for what is wrong."""

import copy
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "workflow" / "profiles" / "kubernetes"
KINDS = {
    "PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "ServiceAccount": "V1ServiceAccount",
    "Role": "V1Role",
    "RoleBinding": "V1RoleBinding",
    "Job": "V1Job",
}
NOW = 1_800_000_000.0


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """The scripts import each other as files of one folder."""
    sys.path.insert(0, str(PROFILE))
    before = set(sys.modules)
    yield
    sys.path.remove(str(PROFILE))
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == PROFILE:
            del sys.modules[name]


def documents():
    return list(yaml.safe_load_all((ROOT / "workflow/kubernetes/jobs.yaml").read_text()))


def driver():
    """The driver's pod as the cluster makes it of the manifest."""
    pod = copy.deepcopy(documents()[-1]["spec"]["template"])
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    pod["spec"]["containers"][0]["volumeMounts"].append({"name": "token", "mountPath": account})
    pod["spec"]["volumes"].append({"name": "token", "projected": {"sources": []}})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "perfcast", "uid": "1", "controller": True}
    pod["metadata"] |= {"name": "perfcast-x", "uid": "2", "ownerReferences": [owner]}
    return pod


def request(**given):
    from manifest import Request

    script = "/project/.snakemake/tmp.a1/snakejob.train.7.sh"
    standard = {"script": script, "threads": 1, "mem_mb": 2000, "minutes": 30, "folder": "/project", "variables": {}}
    return Request(**{**standard, **given})


def built(of_driver=None, template=None, **given):
    from manifest import build, read_template

    return build(template or read_template(), of_driver or driver(), request(**given))


def test_a_job_is_the_driver_s_pod_with_what_its_rule_asks_for():
    job = built(threads=3, mem_mb=4000, minutes=90)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    its = driver()["spec"]
    assert container["image"] == its["containers"][0]["image"]
    assert [one["mountPath"] for one in container["volumeMounts"]] == ["/project/results", "/project/.snakemake"]
    assert pod["volumes"] == its["volumes"][:1]
    assert container["command"] == ["/bin/sh", "/project/.snakemake/tmp.a1/snakejob.train.7.sh"]
    assert container["resources"] == {"requests": {"cpu": "3", "memory": "4000M"}, "limits": {"memory": "4000M"}}
    assert (pod["activeDeadlineSeconds"], job["spec"]["backoffLimit"], pod["restartPolicy"]) == (5400, 0, "Never")
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    assert pod["automountServiceAccountToken"] is False
    assert job["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "perfcast", "uid": "1"}
    ]
    for part in (job, job["spec"]["template"]):
        assert part["metadata"]["labels"] == {
            "app": "perfcast",
            "perfcast/driver": "perfcast",
            "perfcast/rule": "train",
        }


def test_a_pod_of_a_job_is_as_careful_as_the_one_pod_of_the_whole_graph():
    _, whole = yaml.safe_load_all((ROOT / "workflow/kubernetes/job.yaml").read_text())
    careful = whole["spec"]["template"]["spec"]["securityContext"]
    for pod in (built()["spec"]["template"]["spec"], documents()[-1]["spec"]["template"]["spec"]):
        assert careful.items() <= pod["securityContext"].items()


def test_secrets_stay_references_and_variables_of_snakemake_are_told():
    of_driver = driver()
    secret = {"name": "MLFLOW_TRACKING_URI", "valueFrom": {"secretKeyRef": {"name": "perfcast", "key": "tracking"}}}
    of_driver["spec"]["containers"][0]["env"] += [secret, {"name": "PERFCAST_ARTIFACTS", "value": "s3://bucket/x"}]
    job = built(of_driver, variables={"PERFCAST_INVOCATION": "2026-11-22 14:00:00", "PERFCAST_ARTIFACTS": "other"})
    env = job["spec"]["template"]["spec"]["containers"][0]["env"]
    assert secret in env
    assert [one["value"] for one in env if one["name"] == "PERFCAST_ARTIFACTS"] == ["s3://bucket/x"]
    assert {"name": "PERFCAST_INVOCATION", "value": "2026-11-22 14:00:00"} in env


def test_what_the_template_says_comes_before_the_driver_s_pod():
    from manifest import read_template

    template = read_template()
    pod = template["spec"]["template"]["spec"]
    pod |= {"nodeSelector": {"pool": "large"}, "imagePullSecrets": [{"name": "mine"}]}
    pod["containers"][0] |= {
        "image": "other:2", "env": [{"name": "POD_NAME", "value": "x"}], "resources": {"limits": {"nvidia.com/gpu": 1}},
    }  # fmt: skip
    before = copy.deepcopy(template)
    of_driver = driver()
    of_driver["spec"]["imagePullSecrets"] = [{"name": "driver"}]
    made = built(of_driver, template)["spec"]["template"]["spec"]
    assert template == before
    assert (made["nodeSelector"], made["imagePullSecrets"]) == ({"pool": "large"}, [{"name": "mine"}])
    (container,) = made["containers"]
    assert container["image"] == "other:2"
    assert container["env"] == [{"name": "POD_NAME", "value": "x"}]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1, "memory": "2000M"}


@pytest.mark.parametrize(
    "rule",
    ["train", "data_features_split_standardize_support", "_", "Ä" * 80, "a" * 300, "../../x; rm -rf $HOME", "-", ""],
)
def test_names_are_labels_of_dns_and_no_two_are_the_same(rule):
    from manifest import job_name, label

    names = {job_name(rule) for _ in range(50)}
    assert len(names) == 50
    for name in names:
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
        assert len(name) <= 63
    assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", label(rule))
    assert len(label(rule)) <= 63


@pytest.mark.parametrize("volume", [{"emptyDir": {}}, None])
def test_scripts_in_no_shared_volume_are_refused(volume):
    from errors import UserError

    of_driver = driver()
    of_driver["spec"]["volumes"] = [{"name": "project", **volume}] if volume else []
    with pytest.raises(
        UserError, match=r"must be in a claim .*, however: .* is in (a volume of its own|no volume); see"
    ):
        built(of_driver)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("kind: Job", "kind: [", "while parsing a flow sequence"),
        ("kind: Job", "kind: CronJob", "kind is 'CronJob'; write Job"),
        ("apiVersion: batch/v1", "apiVersion: v1", "apiVersion is 'v1'"),
        ("backoffLimit: 0", "backoffLimit: 3", "spec.backoffLimit is 3; write 0"),
        ("backoffLimit: 0", "backoffLimit: false", "spec.backoffLimit is False; write 0"),
        ("restartPolicy: Never", "restartPolicy: OnFailure", "restartPolicy is 'OnFailure'; write Never"),
        ("- name: job", "", "containers is None"),
        ("- name: job", "- job", "containers is ['job']"),
        ("- name: job", "- {name: job, command: [ls]}", "its container has command; remove it"),
        ("- name: job", "- {name: job, env: {a: b}}", "env is {'a': 'b'}"),
        ("- name: job", "- {name: job, resources: 4}", "resources is 4"),
        ("- name: job", "- {name: job, resources: {limits: 4}}", "resources.limits is 4"),
        ("labels: {app: perfcast}", "labels: perfcast", "metadata.labels is 'perfcast'"),
        ("spec:", "specification:", "spec.backoffLimit is None"),
    ],
)
def test_a_broken_template_is_told_in_a_line(tmp_path, before, after, said):
    from errors import UserError
    from manifest import read_template

    path = tmp_path / "job.yaml"
    text = (PROFILE / "job.yaml").read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(UserError) as found:
        read_template(path)
    line = str(found.value)
    assert line.startswith("job.yaml must be the template of a Job, however: ")
    assert said in line
    assert line.isprintable()


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe\x00", b"- &a [*a]", b"1", None])
def test_a_template_that_is_none_is_told_in_a_line(tmp_path, content):
    from errors import UserError
    from manifest import read_template

    if content is not None:
        (tmp_path / "job.yaml").write_bytes(content)
    with pytest.raises(UserError, match="must be the template of a Job, however"):
        read_template(tmp_path / "job.yaml")


def job_of(*conditions, **metadata):
    listed = [{"type": kind, "status": "True", "reason": "BackoffLimitExceeded"} for kind in conditions]
    return {"metadata": {"name": "perfcast-a", **metadata}, "status": {"conditions": listed}}


def pod_of(container=None, **status):
    states = {"containerStatuses": [{"name": "job", "state": container}]} if container else {}
    limits = [{"name": "job", "resources": {"limits": {"memory": "2000M"}}}]
    spec = {"activeDeadlineSeconds": 1800, "containers": limits}
    return {"metadata": {"name": "perfcast-a-x"}, "spec": spec, "status": {**states, **status}}


def ago(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW - seconds))


def killed(code, reason="Error"):
    return {"terminated": {"exitCode": code, "reason": reason}}


def disrupted():
    told = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "a larger one"}
    return pod_of(killed(143), conditions=[told])


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        ([pod_of(killed(1))], "its command ended with exit code 1"),
        ([pod_of(killed(139, "ContainerCannotRun"))], "its command ended with exit code 139 (ContainerCannotRun)"),
        ([pod_of(killed(137, "OOMKilled"))], "it was killed for its memory at its limit of 2000M (OOMKilled)"),
        (
            [pod_of(killed(137), reason="Evicted", message="low on memory")],
            "its pod was taken away (Evicted: low on memory)",
        ),
        ([pod_of(reason="NodeLost")], "its pod was taken away (NodeLost)"),
        ([disrupted()], "its pod was taken away (PreemptionByScheduler: a larger one)"),
        ([pod_of(killed(143), reason="DeadlineExceeded")], "it took longer than its 1800 seconds (DeadlineExceeded)"),
        ([], "the cluster gave it up (BackoffLimitExceeded)"),
        ([{}], "the cluster gave it up (BackoffLimitExceeded)"),
    ],
)
def test_a_job_that_failed_says_why(pods, why):
    from outcome import outcome

    found = outcome(job_of("FailureTarget", "Failed"), pods, NOW)
    assert (found.state, found.why, found.stuck) == ("failed", why, False)
    assert found.remedy


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError"])
def test_an_image_or_a_secret_that_does_not_come_is_waited_for_five_minutes(reason):
    from outcome import outcome

    waiting = {"waiting": {"reason": reason, "message": "not found"}}
    found = outcome(job_of(), [pod_of(waiting, startTime=ago(100))], NOW)
    assert (found.state, found.why, found.stuck) == ("running", "", False)
    found = outcome(job_of(), [pod_of(waiting, startTime=ago(400))], NOW)
    assert (found.state, found.why, found.stuck) == ("running", f"it cannot start ({reason}: not found)", True)


def test_a_name_that_is_none_of_an_image_is_not_waited_for():
    from outcome import outcome

    waiting = {"waiting": {"reason": "InvalidImageName"}}
    assert outcome(job_of(), [pod_of(waiting, startTime=ago(1))], NOW).stuck


@pytest.mark.parametrize(
    ("job", "pods", "state", "why"),
    [
        (job_of(), [], "running", ""),
        (job_of(creationTimestamp=ago(400)), [], "running", "it has no pod yet"),
        (job_of("SuccessCriteriaMet"), [pod_of(killed(0, "Completed"))], "running", ""),
        (job_of("FailureTarget"), [pod_of(killed(1))], "running", ""),
        (job_of("SuccessCriteriaMet", "Complete"), [], "success", ""),
        (job_of("Complete", deletionTimestamp=ago(1)), [], "success", ""),
        (job_of("Failed", deletionTimestamp=ago(1)), [], "running", ""),
        (job_of(), [pod_of({"running": {}}, startTime=ago(9000))], "running", ""),
        (job_of(), [pod_of({"waiting": {"reason": "ContainerCreating"}}, startTime=ago(9000))], "running", ""),
    ],
)
def test_a_job_is_over_when_the_cluster_says_so(job, pods, state, why):
    from outcome import outcome

    found = outcome(job, pods, NOW)
    assert (found.state, found.why, found.stuck) == (state, why, False)


def test_a_job_may_wait_for_a_place_as_long_as_it_takes():
    from outcome import outcome

    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
    pod = pod_of(conditions=[told])
    pod["metadata"]["creationTimestamp"] = ago(9000)
    found = outcome(job_of(), [pod], NOW)
    assert (found.state, found.stuck) == ("running", False)
    assert found.why == "it waits for a place (Unschedulable: 0/3 nodes are available)"


@pytest.mark.parametrize(
    "strange",
    [{}, {"status": None}, {"metadata": None, "status": {"conditions": None}}, {"status": []}, {"status": "x"}],
)
def test_an_answer_without_what_it_should_have_is_a_job_that_runs(strange):
    from outcome import outcome

    assert outcome(strange, [strange], NOW).state == "running"


def say(*words, folder, **variables):
    """Run the scripts as Snakemake does."""
    return subprocess.run(
        [sys.executable, "-E", str(PROFILE / "jobs.py"), *words],
        check=False, cwd=folder, env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def submitting(threads="1", mem="2000", minutes="30"):
    return ("submit", "--threads", threads, "--mem-mb", mem, "--minutes", minutes, "/x/snakejob.train.1.sh")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the command must be one of submit, status, cancel, clear, watch, however: found ''"),
        (("delete\nall",), r"found 'delete\nall'"),
        (submitting(mem="<TBD>"), "mem_mb of a rule must be a whole number from 1 on, however: found '<TBD>'"),
        (submitting(mem="0"), "found '0'"),
        (submitting(mem="-5"), "found '-5'"),
        (submitting(mem="2000.5"), "found '2000.5'"),
        (submitting(mem="٣"), "found '٣'"),
        (submitting(minutes="9999999999"), "runtime of a rule must be"),
        (submitting(threads="9" * 5000), "threads of a rule must be"),
        (submitting(), "KUBERNETES_SERVICE_HOST is not set; start it by kubectl apply"),
        (("submit",), "submit must be given --threads, --mem-mb, --minutes with their values, and a script, however"),
        (("submit", "--threads", "1", "x"), "found '--threads 1 x'"),
        (("submit", "--memory", "1", *submitting()[3:]), "found '--memory 1 --mem-mb"),
        (("status",), "found ''"),
        (("status", "a", "b"), "found 'a b'"),
        (("status", "a" * 64), "a job must be named as submit named it"),
        (("status", "../pods/x"), "found '../pods/x'"),
        (("cancel", "--all"), "found '--all'"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(tmp_path, words, said):
    done = say(*words, folder=tmp_path, PYTHONIOENCODING="utf-8", LC_ALL="C.UTF-8")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("perfcast: ")
    assert said in line


def test_the_official_client_knows_every_key_of_the_manifests():
    client = pytest.importorskip("kubernetes.client", reason="needs the client: pip install kubernetes")
    read = client.ApiClient()
    for document in [*documents(), built(), yaml.safe_load((PROFILE / "job.yaml").read_text())]:
        given = json.loads(json.dumps(document))
        if given["kind"] == "Job" and "image" not in given["spec"]["template"]["spec"]["containers"][0]:
            given["spec"]["template"]["spec"]["containers"][0]["image"] = "taken from the driver"
        understood = read._ApiClient__deserialize(given, KINDS[given["kind"]])
        assert read.sanitize_for_serialization(understood) == given


def test_the_manifest_holds_together():
    claim, account, role, binding, job = documents()
    pod = job["spec"]["template"]["spec"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert pod["serviceAccountName"] == account["metadata"]["name"] == binding["subjects"][0]["name"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert len({one["image"] for one in (*pod["initContainers"], *pod["containers"])}) == 1
    files = [word for word in pod["initContainers"][0]["command"] if "/" in word]
    assert files
    assert all((ROOT / file).is_file() for file in files)


def test_the_image_has_the_executor():
    assert '".[kubernetes]"' in (ROOT / "Dockerfile").read_text()


def test_the_profile_is_that_of_slurm_but_for_the_executor():
    mine, slurm = (
        yaml.safe_load((ROOT / "workflow" / "profiles" / name / "config.yaml").read_text())
        for name in ("kubernetes", "slurm")
    )
    own = {"executor", "shared-fs-usage", *[name for name in mine if name.startswith("cluster-generic")]}
    theirs = {"executor", "slurm-status-command"}
    assert {k: v for k, v in mine.items() if k not in own} == {k: v for k, v in slurm.items() if k not in theirs}
    for name in ("cancel", "sidecar"):
        script = ROOT / mine[f"cluster-generic-{name}-cmd"]
        assert script.stat().st_mode & 0o111
        assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0
