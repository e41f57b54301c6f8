"""What became of a job, from what the cluster says of it and of its pods."""

from __future__ import annotations

import calendar
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PATIENCE = 300
"""Seconds for an image, a secret or a place to come: a registry may be away for a moment, a wrong name never comes."""
_USUAL = {"", "ContainerCreating", "PodInitializing"}
_HOPELESS = {"InvalidImageName", "ErrImageNeverPull"}
_MORE = "its next attempt asks for more, where retries are left"

Given = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """`state` is a word that Snakemake knows; `why` says what went wrong, or what is waited for.

    A `stuck` job would wait for ever: it counts as failed once it was deleted.
    """

    state: str
    why: str = ""
    remedy: str = ""
    stuck: bool = False


def outcome(job: Given, pods: Sequence[Given], now: float) -> Outcome:
    """Tell what became of a job at a time of the cluster's, in seconds."""
    name = _at(job, "metadata", "name")
    if any(condition.get("type") == "Complete" for condition in _conditions(job)):
        return Outcome("success")
    if _at(job, "metadata", "deletionTimestamp"):
        return Outcome("running")  # its pods may write until they are gone
    for condition in _conditions(job):
        if condition.get("type") == "Failed":
            why, remedy = _failure(pods, str(name))
            told = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
            return Outcome("failed", why or f"the cluster gave it up ({told})", remedy)
    for pod in pods:
        found = _waiting(pod, now)
        if found.why:
            return found
    if not pods and now - _time(_at(job, "metadata", "creationTimestamp"), now) > PATIENCE:
        return Outcome("running", "it has no pod yet", f"see kubectl describe job {name}")
    return Outcome("running")


def _failure(pods: Sequence[Given], job: str) -> tuple[str, str]:
    """Return why a job's pods failed, and what to do; empty where no pod is left to tell."""
    for pod in sorted(pods, key=lambda one: str(_at(one, "metadata", "creationTimestamp")), reverse=True):
        reason, message = _at(pod, "status", "reason"), _at(pod, "status", "message")
        if reason == "DeadlineExceeded":
            seconds = _at(pod, "spec", "activeDeadlineSeconds")
            return (
                f"it took longer than its {seconds} seconds (DeadlineExceeded)",
                f"raise runtime of its rule; {_MORE}",
            )
        for status in _containers(pod):
            ended = _at(status, "state", "terminated") or {}
            if ended.get("reason") == "OOMKilled":
                limits = [_at(one, "resources", "limits", "memory") for one in _at(pod, "spec", "containers") or ()]
                told = f" at its limit of {limits[0]}" if limits and limits[0] else ""
                return f"it was killed for its memory{told} (OOMKilled)", f"raise mem_mb of its rule; {_MORE}"
        if reason:
            said = f"{reason}: {message}" if message else str(reason)
            return f"its pod was taken away ({said})", f"see kubectl describe pod {_at(pod, 'metadata', 'name')}"
        for condition in _conditions(pod):
            if condition.get("type") == "DisruptionTarget":
                said = f"{condition.get('reason')}: {condition.get('message')}"
                return f"its pod was taken away ({said})", f"see kubectl describe job {job}"
        for status in _containers(pod):
            ended = _at(status, "state", "terminated") or {}
            if ended.get("exitCode"):
                other = f" ({ended['reason']})" if ended.get("reason") not in (None, "Error") else ""
                return f"its command ended with exit code {ended['exitCode']}{other}", f"see kubectl logs job/{job}"
    return "", f"see kubectl describe job {job}"


def _waiting(pod: Given, now: float) -> Outcome:
    """Tell what a pod waits for: a place as long as it takes, an image or a secret for a while."""
    since = now - _time(_at(pod, "status", "startTime") or _at(pod, "metadata", "creationTimestamp"), now)
    for status in _containers(pod):
        waits = _at(status, "state", "waiting") or {}
        reason = str(waits.get("reason") or "")
        if reason in _HOPELESS or (reason not in _USUAL and since > PATIENCE):
            said = f"{reason}: {waits['message']}" if waits.get("message") else reason
            remedy = "see image, imagePullSecrets and env in workflow/kubernetes/jobs.yaml"
            return Outcome("running", f"it cannot start ({said})", remedy, stuck=True)
    for condition in _conditions(pod, status="False"):
        if condition.get("type") == "PodScheduled" and since > PATIENCE:
            said = f"{condition.get('reason')}: {condition.get('message')}"
            return Outcome("running", f"it waits for a place ({said})", "jobs queue until a node has room")
    return Outcome("running")


def _conditions(of: Given, status: str = "True") -> list[Given]:
    return [one for one in _at(of, "status", "conditions") or () if one.get("status") == status]


def _containers(pod: Given) -> list[Given]:
    return [one for kind in ("initContainerStatuses", "containerStatuses") for one in _at(pod, "status", kind) or ()]


def _at(given: Given, *keys: str) -> Any:
    """Return what is at a place that may be missing."""
    found: Any = given
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _time(text: Any, otherwise: float) -> float:
    try:
        return calendar.timegm(time.strptime(str(text)[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return otherwise
