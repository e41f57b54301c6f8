"""What Snakemake's executor `cluster-generic` calls: submit, ask, cancel and watch over the jobs of one driver."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errors import RefusedError, SilentError, UserError, one_line

if TYPE_CHECKING:
    from api import Api

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NOTES = Path(".snakemake") / "kubernetes"
"""What was said of a waiting job is not said again."""
_RUNNING = _NOTES / "running.list"
_FRESH = 5
"""Seconds."""
_FOREGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
_OPTIONS = {"--threads": "threads", "--mem-mb": "mem_mb", "--minutes": "runtime"}
_LARGEST = 2**31 - 1


def submit(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Submit a script as a job and print the job's name."""
    from api import Api
    from manifest import Request, build, read_template

    if tuple(words[:-1:2]) != tuple(_OPTIONS) or len(words) != 2 * len(_OPTIONS) + 1:
        raise UserError(
            f"submit must be given {', '.join(_OPTIONS)} with their values, and a script",
            f"found {' '.join(words)[:100]!r}", "see config.yaml of the profile",
        )  # fmt: skip
    numbers, script = _numbers(words[:-1]), words[-1]
    request = Request(
        script=str(Path(script).absolute()), folder=str(Path.cwd()), variables=_variables(environment), **numbers
    )
    template = read_template()
    api = Api(environment, tries=6)
    job = build(template, _own_pod(api, environment), request)
    try:
        api.ask("POST", api.jobs(), job, fieldValidation="Strict")
    except RefusedError as refused:
        if refused.status != 409:  # else an earlier try had arrived: nobody else makes this name
            raise UserError(
                "the cluster must take a job", f"{refused.status} {refused}",
                "see workflow/profiles/kubernetes/job.yaml and the Role in workflow/kubernetes/jobs.yaml",
            )  # fmt: skip
    print(job["metadata"]["name"])


def status(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Print what became of a job, in the word that Snakemake knows; an API that is away for a while fails no job.

    Snakemake asks for one job after another: the first to ask looks which are running, the others need not load what
    speaks to a cluster.
    """
    name = " ".join(words)
    _require_name(name)
    if _runs(name):
        print("running")
        return
    from api import Api

    api = Api(environment, tries=2)
    try:
        state = _state(api, name)
        if state == "running":
            _note_running(api)
        print(state)
    except (SilentError, RefusedError) as error:
        _say(f"job {name} must be asked for, however: the cluster answers {error}; it is asked again")
        print("running")


def _state(api: Api, name: str) -> str:
    from outcome import outcome

    try:
        job = api.ask("GET", api.jobs(name))
    except RefusedError as refused:
        if refused.status != 404:
            raise
        if not _forget(name):
            _say(f"job {name} must end well, however: it was deleted; see kubectl get events")
        return "failed"
    pods = api.ask("GET", api.pods(), labelSelector=f"job-name={name}")
    found = outcome(job, pods.get("items") or [], api.now)
    if found.why and (found.state != "running" or not _noted(name, found.why)):
        must = "end well" if found.state == "failed" else "start"
        _say(f"job {name} must {must}, however: {found.why}; {found.remedy}")
    if found.stuck:
        _delete(api, name)
    if found.state != "running":
        _forget(name)
    return found.state


def _runs(name: str) -> bool:
    """Tell whether a job was seen running a moment ago."""
    with suppress(OSError, ValueError):
        seen, *names = _RUNNING.read_text(encoding="utf-8").split()
        return name in names and 0 <= time.time() - float(seen) < _FRESH
    return False


def _note_running(api: Api) -> None:
    """Note the jobs that run or wait, and of which there is nothing to say."""
    from manifest import RULE_LABEL
    from outcome import outcome

    seen = time.time()
    living = "status.phase!=Succeeded,status.phase!=Failed"
    pods = api.ask("GET", api.pods(), labelSelector=RULE_LABEL, fieldSelector=living).get("items") or []
    names = []
    for pod in pods:
        name, found = str(pod["metadata"]["labels"].get("job-name", "")), outcome({}, [pod], api.now)
        if name and not found.stuck and not pod["metadata"].get("deletionTimestamp") and _is_said(name, found.why):
            names.append(name)
    with suppress(OSError):
        _NOTES.mkdir(parents=True, exist_ok=True)
        new = _RUNNING.with_suffix(".new")
        new.write_text("\n".join([str(seen), *names]), encoding="utf-8")
        new.replace(_RUNNING)


def cancel(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Delete jobs; Snakemake gives this two seconds."""
    for name in words:
        _require_name(name)
    from api import Api

    api = Api(environment, tries=1, timeout=1.5)
    for name in words:
        _delete(api, name)


def clear(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Delete what a killed driver of this name left running, and wait until it is gone."""
    from api import Api
    from manifest import DRIVER_LABEL, label, owner_of

    api = Api(environment, tries=6)
    mine = f"{DRIVER_LABEL}={label(owner_of(_own_pod(api, environment))['name'])}"
    deleted: set[str] = set()
    while True:
        jobs = [one for one in api.ask("GET", api.jobs(), labelSelector=mine).get("items") or () if not _ended(one)]
        for name in [one["metadata"]["name"] for one in jobs if one["metadata"]["name"] not in deleted]:
            _delete(api, name)
            deleted.add(name)
        if not jobs:
            break
        time.sleep(0.5)
    if deleted:
        _say(f"{len(deleted)} {'job was' if len(deleted) == 1 else 'jobs were'} still running and deleted")


def watch(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Wait until Snakemake ends, by itself or by a kill, and delete the jobs that it left.

    Snakemake forgets to cancel the jobs whose status it is asking for at that moment.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    parent = os.getppid()
    print("watching", flush=True)
    try:
        while os.getppid() == parent:
            time.sleep(1)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        clear((), environment)


def _numbers(words: Sequence[str]) -> dict[str, int]:
    """Read what the rule asks for. Raises: UserError when it is no number of at least one."""
    found = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        resource = _OPTIONS[option]
        whole = int(value) if re.fullmatch(r"[0-9]{1,10}", value) else 0
        if not 0 < whole <= _LARGEST // 60:
            raise UserError(
                f"{resource} of a rule must be a whole number from 1 on", f"found {value[:100]!r}",
                f"state {resource} in the rule or in default-resources of the profile",
            )  # fmt: skip
        found[option.strip("-").replace("-", "_")] = whole
    return found


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what Snakemake's own process told its jobs: the name of the invocation, the file that they hold."""
    from api import ACCOUNT_VARIABLE

    return {k: v for k, v in environment.items() if k.startswith("PERFCAST_") and k != ACCOUNT_VARIABLE}


def _own_pod(api: Api, environment: Mapping[str, str]) -> dict[str, Any]:
    name = environment.get("POD_NAME") or environment.get("HOSTNAME") or ""
    try:
        return api.ask("GET", api.pods(name or "-"))
    except RefusedError as refused:
        raise UserError(
            "the driver must be able to read its own pod", f"of {name!r} the cluster says {refused.status} {refused}",
            "see POD_NAME and the Role in workflow/kubernetes/jobs.yaml",
        )  # fmt: skip


def _delete(api: Api, name: str) -> None:
    try:
        api.ask("DELETE", api.jobs(name), _FOREGROUND)
    except RefusedError as refused:
        if refused.status != 404:
            raise


def _ended(job: Mapping[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(one.get("type") in ("Complete", "Failed") and one.get("status") == "True" for one in conditions)


def _is_said(name: str, why: str) -> bool:
    """Tell whether there is nothing to say of a job, or it was said before."""
    path = _NOTES / name
    with suppress(OSError):
        return not why or (path.is_file() and path.read_text(encoding="utf-8") == why)
    return False


def _noted(name: str, why: str) -> bool:
    """Tell whether this was said of a job before, and note it where there is room."""
    if _is_said(name, why):
        return True
    with suppress(OSError):
        _NOTES.mkdir(parents=True, exist_ok=True)
        (_NOTES / name).write_text(why, encoding="utf-8", errors="replace")
    return False


def _forget(name: str) -> bool:
    """Remove what was noted of a job, and tell whether there was something."""
    path = _NOTES / name
    noted = path.is_file()
    with suppress(OSError):
        path.unlink(missing_ok=True)
    return noted


def _require_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise UserError(
            "a job must be named as submit named it", f"found {name[:100]!r}", "remove .snakemake/incomplete"
        )


def _say(line: str) -> None:
    print(f"perfcast: {one_line(line)}", file=sys.stderr, flush=True)


COMMANDS: dict[str, Callable[[Sequence[str], Mapping[str, str]], None]] = {
    "submit": submit,
    "status": status,
    "cancel": cancel,
    "clear": clear,
    "watch": watch,
}


def main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command and return its exit code."""
    # Ctrl-C is Snakemake's to answer: a submission that it cut would leave a job that nobody knows
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if not words or words[0] not in COMMANDS:
            raise UserError(f"the command must be one of {', '.join(COMMANDS)}", f"found {' '.join(words[:1])!r}")
        COMMANDS[words[0]](words[1:], environment)
    except UserError as problem:
        _say(str(problem))
        return 2
    except (SilentError, RefusedError) as error:
        _say(f"the cluster must answer, however: {error}; try again")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
