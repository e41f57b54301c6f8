"""A job as the cluster takes it: the template, what it leaves out from the driver's pod, and what the rule asks for."""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from errors import UserError

TEMPLATE = Path(__file__).parent / "job.yaml"
DRIVER_LABEL = "perfcast/driver"
RULE_LABEL = "perfcast/rule"
_CONTAINER = "snakemake"
_ACCOUNT_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_LONGEST = 63
_FROM_POD = ("imagePullSecrets", "securityContext")
_FROM_CONTAINER = ("image", "imagePullPolicy", "envFrom", "securityContext")
# what the whole rests on, and what the template may say of it
_FIXED = {
    ("apiVersion",): "batch/v1",
    ("kind",): "Job",
    ("spec", "backoffLimit"): 0,
    ("spec", "template", "spec", "restartPolicy"): "Never",
}


@dataclass(frozen=True)
class Request:
    """What a rule asks for: its script, processors, megabytes and minutes, and variables that Snakemake set."""

    script: str
    threads: int
    mem_mb: int
    minutes: int
    folder: str
    variables: Mapping[str, str]


def read_template(path: Path = TEMPLATE) -> dict[str, Any]:
    """Read the template. Raises: UserError when it is not one of a job."""
    import yaml  # not installed with Python: only who submits a job loads it

    required = f"{path.name} must be the template of a Job"
    try:
        given = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(required, str(error), "see the one of the repository")
    for keys, value in _FIXED.items():
        found = _at(given, *keys)
        if found != value or isinstance(found, bool):
            raise UserError(required, f"{'.'.join(keys)} is {found!r}", f"write {value}")
    _require_container(given, required)
    _require_names_and_values(given, required)
    return dict(given)


def _require_container(given: Mapping[str, Any], required: str) -> None:
    pod = _at(given, "spec", "template", "spec")
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        raise UserError(required, f"spec.template.spec.containers is {containers!r}", "list the container of the job")
    for key in ("command", "args"):
        if key in containers[0]:
            raise UserError(required, f"its container has {key}", "remove it: the rule says what is run")
    for where, key in ((pod, "volumes"), (containers[0], "env"), (containers[0], "volumeMounts")):
        listed = where.get(key, [])
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise UserError(required, f"{key} is {listed!r}", "write a list of names and values")


def _require_names_and_values(given: Mapping[str, Any], required: str) -> None:
    container = ("spec", "template", "spec", "containers")
    places: dict[str, Any] = {
        "metadata": given.get("metadata"),
        "metadata.labels": _at(given, "metadata", "labels"),
        "spec.template.metadata": _at(given, "spec", "template", "metadata"),
        "spec.template.metadata.labels": _at(given, "spec", "template", "metadata", "labels"),
        "resources": _at(given, *container)[0].get("resources"),
    }
    places |= {f"resources.{key}": _at(places["resources"], key) for key in ("requests", "limits")}
    for place, found in places.items():
        if found is not None and not isinstance(found, dict):
            raise UserError(required, f"{place} is {found!r}", "write names and values")


def build(template: Mapping[str, Any], driver: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """Return the job of a request. Raises: UserError when its script is in no volume that its pod would share."""
    job = copy.deepcopy(dict(template))
    owner, rule = owner_of(driver), rule_of(request.script)
    labels = {DRIVER_LABEL: label(owner["name"]), RULE_LABEL: label(rule)}
    job["metadata"] = (job.get("metadata") or {}) | {"name": job_name(rule), "ownerReferences": [owner]}
    for part in (job, job["spec"]["template"]):
        metadata = part["metadata"] = part.get("metadata") or {}
        metadata["labels"] = {"app": "perfcast"} | (metadata.get("labels") or {}) | labels
    job["spec"].setdefault("ttlSecondsAfterFinished", 86400)
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    _inherit(pod, container, driver)
    container["command"] = ["/bin/sh", request.script]
    container["workingDir"] = request.folder
    stated = {one.get("name") for one in container["env"]}
    container["env"] += [{"name": k, "value": v} for k, v in sorted(request.variables.items()) if k not in stated]
    # of the pod, not of the job: time in the queue does not count
    pod["activeDeadlineSeconds"] = 60 * request.minutes
    memory = {"memory": f"{request.mem_mb}M"}
    asked = container["resources"] = container.get("resources") or {}
    asked["requests"] = (asked.get("requests") or {}) | memory | {"cpu": str(request.threads)}
    asked["limits"] = (asked.get("limits") or {}) | memory
    _require_shared(pod, container, request.script)
    return job


def _inherit(pod: dict[str, Any], container: dict[str, Any], driver: Mapping[str, Any]) -> None:
    """Take over from the driver's pod what the template leaves out."""
    of_driver = driver["spec"]
    named = [one for one in of_driver["containers"] if one["name"] == _CONTAINER]
    its = (named or of_driver["containers"])[0]
    for mine, others, names in ((pod, of_driver, _FROM_POD), (container, its, _FROM_CONTAINER)):
        for name in names:
            if name not in mine and name in others:
                mine[name] = others[name]
    mounts = [one for one in its.get("volumeMounts") or () if one["mountPath"] != _ACCOUNT_MOUNT]
    container["volumeMounts"] = _united(container.get("volumeMounts"), mounts, "mountPath")
    container["env"] = _united(container.get("env"), its.get("env"), "name")
    used = {one.get("name") for one in container["volumeMounts"]}
    volumes = [one for one in of_driver.get("volumes") or () if one["name"] in used]
    pod["volumes"] = _united(pod.get("volumes"), volumes, "name")


def _united(mine: Any, others: Any, key: str) -> list[dict[str, Any]]:
    """Return both lists, without what the first has already."""
    first = list(mine or ())
    had = {one.get(key) for one in first}
    return first + [one for one in others or () if one.get(key) not in had]


def _require_shared(pod: Mapping[str, Any], container: Mapping[str, Any], script: str) -> None:
    mounts = [one for one in container["volumeMounts"] if PurePosixPath(script).is_relative_to(str(one["mountPath"]))]
    nearest: Mapping[str, Any] = max(mounts, key=lambda one: len(str(one["mountPath"])), default={})
    volumes = [one for one in pod["volumes"] if one.get("name") == nearest.get("name")]
    if not volumes or "emptyDir" in volumes[0]:
        raise UserError(
            "the folders results and .snakemake must be in a claim that the driver's pod has mounted",
            f"{script} is in {'a volume of its own' if volumes else 'no volume'}",
            "see volumeMounts in workflow/kubernetes/jobs.yaml",
        )


def owner_of(driver: Mapping[str, Any]) -> dict[str, str]:
    """Return who owns the jobs, so that they go when it is deleted: the driver's Job, or its pod where it has none."""
    metadata = driver["metadata"]
    owners = [one for one in metadata.get("ownerReferences") or () if one.get("kind") == "Job"]
    owner = owners[0] if owners else {"apiVersion": "v1", "kind": "Pod", **metadata}
    return {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}


def rule_of(script: str) -> str:
    """Return the rule or group that Snakemake named a script after."""
    return PurePosixPath(script).name.removeprefix("snakejob.").removesuffix(".sh").rpartition(".")[0] or "job"


def job_name(rule: str) -> str:
    """Return a name that is a label of DNS, and that no other attempt has."""
    token = secrets.token_hex(5)
    plain = re.sub(r"[^a-z0-9]+", "-", rule.lower())
    return f"perfcast-{plain}"[: _LONGEST - len(token) - 1].strip("-") + f"-{token}"


def label(text: str) -> str:
    """Return a text as the value of a label."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", text)[:_LONGEST].strip("_.-")


def _at(given: Any, *keys: str) -> Any:
    """Return what is at a place that may be missing."""
    for key in keys:
        given = given.get(key) if isinstance(given, Mapping) else None
    return given
