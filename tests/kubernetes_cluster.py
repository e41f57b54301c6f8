"""An API server on the loopback address that runs the jobs it is given as processes, and speaks of them as a cluster.

It takes no job that a real one would not: the official client's models know every key, the token is right, the Role of
workflow/kubernetes/jobs.yaml allows what is asked, and the volumes are those of the manifest.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import RLock, Semaphore, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml
from small_project import REPOSITORY, environment

NAMESPACE = "science"
DRIVER = "perfcast-7xk2p"
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
MANIFEST = REPOSITORY / "workflow" / "kubernetes" / "jobs.yaml"
# what the image sets by ENV
IMAGE_VARIABLES = ("PATH", "PYTHONPATH", "OMP_NUM_THREADS", "MLFLOW_DISABLE_TELEMETRY", "DVC_NO_ANALYTICS")


class RefusedError(Exception):
    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


def certificate(folder: Path) -> Path:
    """Write a certificate of the loopback address that signs itself, and return the file with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "miniature")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    both = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both.write_bytes(private + (folder / "ca.crt").read_bytes())
    return both


def strange_keys(kind: str, document: dict[str, Any]) -> str:
    """Return what the official client's models say against a document; empty where it is not installed."""
    try:
        from kubernetes import client
    except ImportError:
        return ""
    read = client.ApiClient()
    try:
        understood = read.sanitize_for_serialization(read._ApiClient__deserialize(document, kind))
    except (ValueError, TypeError) as error:
        return str(error)
    return "" if understood == document else f"strict decoding error: unknown field in {kind}"


class Cluster:
    """`faults` holds, by rule, what happens to its next jobs in place of being run: see `_fail`.

    `asked` holds method, path and query of every request, `posted` every job that was taken, and `deleted` the names of
    those that were deleted. `away` requests are answered by 503, and so are `lost` ones, after they were carried out.
    """

    def __init__(self, folder: Path, project: Path, *, places: int = 1) -> None:
        self.project, self.account = project, folder / "account"
        self.account.mkdir(parents=True)
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.token = secrets.token_urlsafe(24)
        (self.account / "token").write_text(self.token)
        (self.account / "namespace").write_text(NAMESPACE)
        self.faults: dict[str, list[str]] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.posted: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.variables: list[dict[str, str]] = []
        self.away = self.lost = 0
        self.jobs: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.documents = {one["kind"]: one for one in yaml.safe_load_all(MANIFEST.read_text())}
        self.pods[DRIVER] = self._driver()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock, self._places = RLock(), Semaphore(places)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(self.account))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def _driver(self) -> dict[str, Any]:
        """Return the driver's pod as the cluster makes it of the manifest: with a token, and owned by its Job."""
        pod = self.documents["Job"]["spec"]["template"]
        spec = json.loads(json.dumps(pod["spec"]))
        for mount in spec["containers"][0]["volumeMounts"]:
            mount["mountPath"] = mount["mountPath"].replace("/project", str(self.project))
        spec["containers"][0]["volumeMounts"] += [
            {"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        ]
        spec["volumes"] += [{"name": "kube-api-access-x", "projected": {"sources": []}}]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "perfcast", "uid": "4711", "controller": True}
        return {
            "metadata": {
                "name": DRIVER,
                "uid": "4712",
                "labels": pod["metadata"]["labels"],
                "ownerReferences": [owner],
            },
            "spec": spec,
            "status": {"phase": "Running"},
        }

    @staticmethod
    def profile(project: Path) -> Path:
        """Copy the profile to a project and return its folder."""
        folder = project / "workflow" / "profiles" / "kubernetes"
        shutil.copytree(REPOSITORY / "workflow" / "profiles" / "kubernetes", folder)
        return folder

    def environment(self) -> dict[str, str]:
        """Return the variables of a process in the driver's pod."""
        return {
            **environment(self.project),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self._server.server_address[1]),
            "PERFCAST_SERVICE_ACCOUNT": str(self.account),
            "POD_NAME": DRIVER,
        }

    def said(self, name: str) -> str:
        """Return what a job printed."""
        return "".join(path.read_text() for path in self.logs.glob(f"{name}*"))

    def __enter__(self) -> Cluster:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for process in list(self._processes.values()):
            _end(process)

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> dict[str, Any]:
        found = re.fullmatch(rf"/(apis/batch|api)/v1/namespaces/{NAMESPACE}/(jobs|pods)(?:/([^/]+))?", path)
        if not found or (found[1] == "api") != (found[2] == "pods"):
            raise RefusedError(404, "NotFound", "the server could not find the requested resource")
        kind, name = found[2], found[3]
        verb = {"POST": "create", "DELETE": "delete", "GET": "get" if name else "list"}[method]
        group = "batch" if kind == "jobs" else ""
        if not any(
            group in rule["apiGroups"] and kind in rule["resources"] and verb in rule["verbs"]
            for rule in self.documents["Role"]["rules"]
        ):
            raise RefusedError(
                403, "Forbidden", f'{kind} is forbidden: User "perfcast" cannot {verb} resource "{kind}"'
            )
        with self._lock:
            if verb == "create":
                return self._create(body, strict=query.get("fieldValidation") == "Strict")
            kept = self.jobs if kind == "jobs" else self.pods
            if verb == "list":
                return {"items": [one for one in kept.values() if _selected(one, query)]}
            if name not in kept:
                raise RefusedError(404, "NotFound", f'{kind} "{name}" not found')
            if verb == "delete":
                assert body["propagationPolicy"] == "Foreground"
                self.deleted.append(name)
                kept[name]["metadata"]["deletionTimestamp"] = _now()
                Thread(target=self._collect, args=(name,), daemon=True).start()
            return kept[name]

    def _create(self, job: dict[str, Any], *, strict: bool) -> dict[str, Any]:
        against = strange_keys("V1Job", job)
        if against and strict:
            raise RefusedError(400, "BadRequest", against)
        metadata, pod = job["metadata"], job["spec"]["template"]["spec"]
        invalid = self._invalid(metadata, pod)
        if invalid:
            raise RefusedError(422, "Invalid", f'Job.batch "{metadata["name"]}" is invalid: {invalid}')
        if metadata["name"] in self.jobs:
            raise RefusedError(409, "AlreadyExists", f'jobs.batch "{metadata["name"]}" already exists')
        self.posted.append(json.loads(json.dumps(job)))
        self.jobs[metadata["name"]] = job
        metadata |= {"uid": secrets.token_hex(8), "creationTimestamp": _now(), "namespace": NAMESPACE}
        job["status"] = {}
        Thread(target=self._run, args=(job,), daemon=True).start()
        return job

    def _invalid(self, metadata: dict[str, Any], pod: dict[str, Any]) -> str:
        (container,) = pod["containers"]
        volumes = {one["name"]: one for one in pod["volumes"]}
        memory = container["resources"]["limits"]["memory"]
        broken = {
            "metadata.name": not LABEL.fullmatch(metadata["name"]),
            "metadata.labels": not all(VALUE.fullmatch(value) for value in metadata["labels"].values()),
            "image": not container.get("image"),
            "containers[0].name": not LABEL.fullmatch(container["name"]),
            "volumeMounts": not {one["name"] for one in container["volumeMounts"]} <= set(volumes),
            "volumes": "kube-api-access-x" in volumes,
            "persistentVolumeClaim": volumes["project"]["persistentVolumeClaim"]["claimName"]
            != self.documents["PersistentVolumeClaim"]["metadata"]["name"],
            "activeDeadlineSeconds": pod["activeDeadlineSeconds"] < 1,
            "resources": not re.fullmatch(r"[1-9]\d*[KMG]?", memory)
            or container["resources"]["requests"]["memory"] != memory,
            "env": not all(isinstance(one.get("value", ""), str) and one["name"] for one in container["env"]),
            "restartPolicy": pod["restartPolicy"] != "Never",
        }
        return ", ".join(name for name, is_broken in broken.items() if is_broken)

    def _run(self, job: dict[str, Any]) -> None:
        name, spec = job["metadata"]["name"], job["spec"]["template"]["spec"]
        labels = {**job["spec"]["template"]["metadata"]["labels"], "job-name": name}
        pod = {
            "metadata": {"name": f"{name}-{secrets.token_hex(3)}"[:63], "labels": labels, "creationTimestamp": _now()},
            "spec": spec,
            "status": {"phase": "Pending"},
        }
        with self._lock:
            self.pods[pod["metadata"]["name"]] = pod
        planned = self.faults.get(labels["perfcast/rule"], [])
        fault = planned.pop(0) if planned else ""
        if fault and not fault.startswith("exit"):
            self._fail(job, pod, fault)
            return
        with self._places:
            code = self._process(job, pod, fault)
        with self._lock:
            if code is None:
                return
            ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
            pod["status"] |= {"phase": "Succeeded" if code == 0 else "Failed", **_container(terminated=ended)}
            _conclude(job, failed=code != 0)

    def _process(self, job: dict[str, Any], pod: dict[str, Any], fault: str) -> int | None:
        """Run a job's command as its container would; give its exit code, or nothing where the job was deleted."""
        (container,) = pod["spec"]["containers"]
        name = job["metadata"]["name"]
        home = self.logs.parent / "homes" / name
        home.mkdir(parents=True)
        variables = {key: value for key, value in environment(self.project).items() if key in IMAGE_VARIABLES}
        fields = {"metadata.name": pod["metadata"]["name"]}
        for one in container["env"]:
            variables[one["name"]] = (
                one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
            )
        command = ["/bin/sh", "-c", fault] if fault else container["command"]
        if not fault:
            paths = [Path(one["mountPath"]) for one in container["volumeMounts"]]
            assert any(Path(command[-1]).is_relative_to(path) for path in paths), command
        with self._lock:
            if "deletionTimestamp" in job["metadata"]:
                return None
            self.variables.append(variables)
            with (self.logs / pod["metadata"]["name"]).open("wb") as log:
                process = subprocess.Popen(
                    command,
                    env={**variables, "HOME": str(home)},
                    cwd=container["workingDir"],
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._processes[name] = process
            pod["status"] |= {"phase": "Running", "startTime": _now(), **_container(running={"startedAt": _now()})}
        process.wait()
        return None if "deletionTimestamp" in job["metadata"] else process.returncode

    def _fail(self, job: dict[str, Any], pod: dict[str, Any], fault: str) -> None:
        """Say of a pod what a cluster says when it was killed for its memory, evicted and so on."""
        status: dict[str, Any] = {
            "OOMKilled": {"phase": "Failed", **_container(terminated={"exitCode": 137, "reason": "OOMKilled"})},
            "DeadlineExceeded": {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active too long"},
            "Evicted": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
            "Running": {"phase": "Running", "startTime": _now(-600), **_container(running={"startedAt": _now(-600)})},
            "Unschedulable": {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes\x1b[2J\nfit",
                    }
                ],
            },
            "ImagePullBackOff": {
                "startTime": _now(-600),
                **_container(waiting={"reason": "ImagePullBackOff", "message": 'Back-off pulling image "perfcast"'}),
            },
        }[fault]
        with self._lock:
            pod["metadata"]["creationTimestamp"] = _now(-600)
            pod["status"] |= status
            if status.get("phase") == "Failed":
                _conclude(job, failed=True)

    def _collect(self, name: str) -> None:
        """Delete a job as the cluster's collector does: its pods first."""
        if name in self._processes:
            _end(self._processes[name])
        with self._lock:
            for pod in [key for key, one in self.pods.items() if one["metadata"]["labels"].get("job-name") == name]:
                del self.pods[pod]
            self.jobs.pop(name, None)


def _selected(one: dict[str, Any], query: dict[str, str]) -> bool:
    """Tell whether selectors take an object: `key=value` and `key` of labels, `status.phase!=` of fields."""
    labels = one["metadata"]["labels"]
    for part in filter(None, query.get("labelSelector", "").split(",")):
        key, equal, value = part.partition("=")
        if key not in labels or (equal and labels[key] != value):
            return False
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        key, _, value = part.partition("!=")
        assert key == "status.phase", part
        if one["status"]["phase"] == value:
            return False
    return True


def _container(**state: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "job", "ready": False, "restartCount": 0, "state": state}]}


def _conclude(job: dict[str, Any], *, failed: bool) -> None:
    told = {"type": "Failed", "reason": "BackoffLimitExceeded"} if failed else {"type": "Complete"}
    before = {"type": "FailureTarget" if failed else "SuccessCriteriaMet", "status": "True"}
    job["status"] = {"conditions": [before, {**told, "status": "True", "message": "as a cluster says"}]}


def _now(later: float = 0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + later))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started: a pod is gone when nothing of it is left."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
    deadline = time.monotonic() + 10
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.05)


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_GET(self) -> None:
            given = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            split = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(split.query).items()}
            cluster.asked.append((self.command, split.path, query))
            try:
                if cluster.away > 0:
                    cluster.away -= 1
                    raise RefusedError(503, "ServiceUnavailable", "the server is starting")
                if self.headers.get("Authorization") != f"Bearer {cluster.token}":
                    raise RefusedError(401, "Unauthorized", "Unauthorized")
                answer = cluster.answer(self.command, unquote(split.path), query, json.loads(given) if given else None)
                status = 201 if self.command == "POST" else 200
                if cluster.lost > 0 and self.command == "POST":
                    cluster.lost -= 1
                    raise RefusedError(503, "ServiceUnavailable", "the answer was lost")
            except RefusedError as error:
                status = error.status
                answer = {"kind": "Status", "status": "Failure", "message": str(error), "reason": error.reason}
            with cluster._lock:
                body = json.dumps(answer).encode()
            self.send_response_only(status)
            self.send_header("Date", formatdate(usegmt=True))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = do_GET  # noqa: N815 (names that the library looks for)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def prepare(cluster: Cluster) -> subprocess.CompletedProcess[str]:
    """Run what the manifest runs before Snakemake."""
    command = cluster.documents["Job"]["spec"]["template"]["spec"]["initContainers"][0]["command"]
    return subprocess.run(
        command, check=False, cwd=cluster.project, env=cluster.environment(), capture_output=True, text=True, timeout=60
    )


def snakemake(cluster: Cluster, *options: str) -> list[str]:
    """Return the command of the driver's pod."""
    (container,) = cluster.documents["Job"]["spec"]["template"]["spec"]["containers"]
    return [sys.executable, "-m", "snakemake", *container["args"], *options]
