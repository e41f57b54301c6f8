"""One run at a time writes to a folder of results, and what a killed one left is cleared by the next.

Snakemake's own lock is a file: a kill leaves it, and nobody can tell it from that of a run that goes on. Here the
kernel says who is alive: a run holds an flock for as long as its process lives, and so does each of its jobs, because
jobs outlive a run that is killed alone.

.snakemake/runs/<folder of results>.run     held by the run; says who it is, and is empty once it has ended
.snakemake/runs/<folder of results>.jobs    held by its jobs, together
"""

from __future__ import annotations

import atexit
import base64
import fcntl
import json
import os
import platform
import posixpath
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO
from urllib.parse import quote, unquote

from perfcast.errors import UserError
from perfcast.io import abandoned, remove

JOBS_VARIABLE = "PERFCAST_JOBS"
"""Tells a job the file that it holds."""
_GLANCE = 0.2
"""Seconds, far more than `state` looks for."""
_KEPT = {"mlflow"}
"""Folders of results whose files perfcast does not write itself."""


@dataclass(frozen=True)
class Owner:
    """Who holds a folder of results: process, machine, this boot of it, and since when."""

    pid: int
    host: str
    boot: str
    since: str

    @property
    def is_here(self) -> bool:
        """Whether it ran on this machine, so that the kernel's answer about it counts."""
        return self.boot == _boot() or self.host == platform.node()


@dataclass(frozen=True)
class State:
    """What is known of a folder of results: its last owner if that did not end by itself, and whether it is alive."""

    owner: Owner | None
    alive: bool
    jobs: tuple[int, ...]


def hold(project: Path, results: str) -> str | None:
    """Hold a folder of results until this process ends, clearing what a killed run left; tell in a line what that was.

    Also sets JOBS_VARIABLE for the processes that this one starts. Where the file system knows no flock, nothing is
    held and Snakemake's own lock is all there is.
    Raises: UserError when another run, or a job of a killed one, still writes there.
    """
    path = _path(project, results, "run")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
        free = _take(file, fcntl.LOCK_EX)
        if not free:  # it may be that somebody only looked
            time.sleep(_GLANCE)
            free = _take(file, fcntl.LOCK_EX)
    except OSError:
        return None
    if not free:
        raise _taken(results, _read(file))
    last = _read(file)
    jobs = _path(project, results, "jobs")
    _require_ended(jobs, results)
    locks = list(_snakemake_locks(project, results))
    if last and locks and not last.is_here:
        raise UserError(
            f"one run at a time may write to {results}",
            f"a run on {last.host} (process {last.pid}) locked it at {last.since} and has not ended",
            "wait for it or, if it is gone, type snakemake --unlock",
        )
    told = _clear(project, results, last, locks) if last else None
    _write(file, Owner(os.getpid(), platform.node(), _boot(), f"{datetime.now():%Y-%m-%d %H:%M}"))
    atexit.register(_ended, file, os.getpid())
    os.environ[JOBS_VARIABLE] = str(jobs.resolve())
    return told


def take_part(environment: Mapping[str, str]) -> TextIO | None:
    """Hold the file of the run that started this job, if one did, for as long as the answer is kept."""
    given = environment.get(JOBS_VARIABLE)
    if not given:
        return None
    try:
        file = Path(given).open("a")  # noqa: SIM115 (kept open for as long as the job lives)
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:  # the folder is another machine's, or gone: the job itself is not the worse for it
        return None
    return file


def state(project: Path, results: str) -> State:
    """Look, without holding anything, who writes to a folder of results or was killed while it did."""
    path, jobs = _path(project, results, "run"), _path(project, results, "jobs")
    if not path.is_file():
        return State(None, False, ())
    with path.open() as file:
        try:
            alive = not _take(file, fcntl.LOCK_SH)
        except OSError:
            alive = False
        return State(_read(file), alive, _holders(jobs))


def _path(project: Path, results: str, kind: str) -> Path:
    return project / ".snakemake" / "runs" / f"{quote(posixpath.normpath(results), safe='')}.{kind}"


def _take(file: TextIO, kind: int) -> bool:
    """Take an flock if nobody else holds it. Raises: OSError where the file system has none."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _taken(results: str, owner: Owner | None) -> UserError:
    who = f"process {owner.pid} on {owner.host} does since {owner.since}" if owner else "another process does"
    return UserError(
        f"one run at a time may write to {results}",
        who,
        "wait until it ends, or name another folder: snakemake --config results=results/other",
    )


def _require_ended(jobs: Path, results: str) -> None:
    with jobs.open("a") as file:
        if _take(file, fcntl.LOCK_EX):
            return
    working = ", ".join(map(str, _holders(jobs)))
    raise UserError(
        f"one run at a time may write to {results}",
        f"jobs of a killed run still do{f' (process {working})' if working else ''}",
        "wait until they end, or end them",
    )


def _holders(path: Path, proc: Path = Path("/proc/locks")) -> tuple[int, ...]:
    """Return the processes that hold an flock of a file; none where the system does not tell."""
    try:
        inode = str(path.stat().st_ino)
        lines = [line.split() for line in proc.read_text().splitlines()]
    except OSError:
        return ()
    held = [words for words in lines if "->" not in words and "FLOCK" in words]
    return tuple(sorted({int(words[4]) for words in held if words[5].rpartition(":")[2] == inode}))


def _snakemake_locks(project: Path, results: str) -> Iterator[Path]:
    """Yield the lock files of Snakemake that name files of this folder of results, and not of one inside it."""
    names = _known(project)
    for path in sorted((project / ".snakemake" / "locks").glob("*.lock")):
        files = [posixpath.normpath(line) for line in path.read_text().splitlines() if line.strip()]
        if any(_belongs(file, names) == posixpath.normpath(results) for file in files):
            yield path


def _belongs(file: str, results: list[str]) -> str:
    """Return the innermost of the folders of results that a file is in."""
    return max((name for name in results if file.startswith(f"{name}/")), key=len, default="")


def _clear(project: Path, results: str, last: Owner, locks: list[Path]) -> str:
    for path in locks:
        path.unlink(missing_ok=True)
    left = unfinished(project, results)
    for path in left:
        remove(path)
    _remove_incomplete(project, results)
    cleared = [f"{len(left)} unfinished {'file' if len(left) == 1 else 'files'}"] if left else []
    cleared += ["its lock"] if locks else []
    done = f"; {' and '.join(cleared)} removed" if cleared else ""
    return f"the run of {last.since} (process {last.pid}) was killed{done}, this one goes on from there"


def _remove_incomplete(project: Path, results: str) -> None:
    """Remove outputs of jobs that were not finished, so that they are missed and made again.

    Snakemake does it itself (`rerun-incomplete`) for the jobs that it knows when it starts, and not for those behind a
    checkpoint. What such a job had written is whole; what it had still to do, as to register a champion, would be lost.
    """
    marks, names = project / ".snakemake" / "incomplete", _known(project)
    for mark in [path for path in marks.rglob("*") if path.is_file()]:
        encoded = "".join(part.removeprefix("@") for part in mark.relative_to(marks).parts)
        with suppress(ValueError):
            output = base64.urlsafe_b64decode(encoded).decode()
            if _belongs(posixpath.normpath(output), names) == posixpath.normpath(results):
                remove(project / output)
                mark.unlink()


def _known(project: Path) -> list[str]:
    """Return the folders of results that a run ever held."""
    return [unquote(path.stem) for path in (project / ".snakemake" / "runs").glob("*.run")]


def unfinished(project: Path, results: str) -> list[Path]:
    """List what a kill left under temporary names in a folder of results; what a living process writes is not told."""
    folder = project / results
    inner = {project / name for name in _known(project)} - {folder}
    return list(abandoned(folder, without=inner | {folder / name for name in _KEPT}))


def _read(file: TextIO) -> Owner | None:
    file.seek(0)
    try:
        return Owner(**json.loads(file.read()))
    except (ValueError, TypeError):  # empty: ended; anything else: cut by a power loss
        return None


def _write(file: TextIO, owner: Owner) -> None:
    file.truncate(0)
    json.dump(asdict(owner), file)
    file.flush()
    os.fsync(file.fileno())


def _ended(file: TextIO, pid: int) -> None:
    if os.getpid() == pid:  # not in a forked child
        file.truncate(0)
        file.close()


def _boot() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""
