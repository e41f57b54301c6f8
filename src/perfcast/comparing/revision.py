"""The results of a git revision, from DVC's cache or remote, without touching the working tree. Only this knows DVC."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from perfcast.errors import UserError

if TYPE_CHECKING:
    from dvc.api import DVCFileSystem

RESULTS = "results"
"""The results folder that dvc.yaml versions."""
_WANTED = (
    *("metrics.json", "raw/*/manifest.json", "standard/*.parquet", "features/*.parquet", "splits/*/*.parquet"),
    *("support/*/*.parquet", "evaluation/*/summary.json"),
    *(f"runs/*/*/*/{name}" for name in ("predictions.parquet", "rehearsals.parquet", "config.yaml")),
)
"""What a comparison reads; models, figures and raw files stay where they are."""


def fetch_revision(project: Path, name: str, out: Path) -> tuple[str, str]:
    """Write what a comparison reads of a revision's results below `out`; return its commit and its dvc.lock.

    `name` is a tag, a branch, a commit or the name of a DVC experiment.
    Raises: UserError when there is no such revision, it has no results, or neither cache nor remote holds them.
    """
    from dvc.api import DVCFileSystem
    from dvc.exceptions import DvcException
    from dvc_data.index import DataIndexDirError

    for noisy in ("dvc", "dvc_data", "dvc_objects"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    commit = _commit_of(project, name)
    try:
        files = DVCFileSystem(str(project), rev=commit)
        lock = _lock_of(files, name)
        for path in _wanted(files, name):
            target = out / PurePosixPath(path).relative_to(RESULTS)
            target.parent.mkdir(parents=True, exist_ok=True)
            files.get_file(path, str(target))
    except (DvcException, DataIndexDirError, OSError) as error:
        raise _absent(name, str(error))
    return commit, lock


def pinned(project: Path, name: str) -> tuple[str, str, str]:
    """Return a revision's commit, its dvc.lock and its metrics.json: what git holds of results, without their files.

    Raises: UserError when there is no such revision, or it has no results.
    """
    from dvc.api import DVCFileSystem

    commit = _commit_of(project, name)
    files = DVCFileSystem(str(project), rev=commit)
    lock = _lock_of(files, name)
    try:
        return commit, lock, str(files.read_text(f"{RESULTS}/metrics.json", encoding="utf-8"))
    except OSError as error:
        raise UserError(
            "a revision to reproduce must have its metrics in git",
            f"{name!r} has no {RESULTS}/metrics.json that can be read: {error}",
            "name a revision that holds one (`git log --oneline -- results/metrics.json`)",
        )


def digests_of(project: Path, paths: Sequence[str]) -> dict[str, str]:
    """Return the digests that dvc.lock would record of files and folders as they are now; "" of one that is absent."""
    from dvc.repo import Repo
    from dvc_data.hashfile.build import build

    found = {}
    with Repo(str(project)) as repo:
        for path in paths:
            where = project.resolve() / path
            if where.exists():
                *_, content = build(repo.cache.local, str(where), repo.fs, "md5", dry_run=True, ignore=repo.dvcignore)
                found[path] = str(content.hash_info.value)
            else:
                found[path] = ""
    return found


def _commit_of(project: Path, name: str) -> str:
    from dvc.scm import SCM, SCMError, resolve_rev

    try:
        return str(resolve_rev(SCM(str(project)), name))
    except SCMError:
        raise UserError(
            "results to compare must be a results folder or a git revision",
            f"{name!r} is neither a folder nor a tag, branch, commit or DVC experiment",
            "`git tag` and `git log --oneline` list revisions",
        )


def _lock_of(files: DVCFileSystem, name: str) -> str:
    try:
        return str(files.read_text("dvc.lock", encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            "the results of a revision must be versioned by DVC",
            f"{name!r} has no dvc.lock",
            "name a revision that holds one (`git log --oneline -- dvc.lock`)",
        )


def _wanted(files: DVCFileSystem, name: str) -> list[str]:
    """Return the paths a comparison reads. Raises: UserError when the revision's evaluation cannot be listed."""
    found = sorted(str(path).lstrip("/") for path in files.find(RESULTS))
    wanted = [path for path in found if any(PurePosixPath(path).match(f"{RESULTS}/{one}") for one in _WANTED)]
    if not any(path.endswith("/summary.json") for path in wanted):
        raise _absent(name, f"no file of {RESULTS}/evaluation can be listed")
    return wanted


def _absent(name: str, fact: str) -> UserError:
    return UserError(
        f"the results of {name!r} must be in the DVC cache or in a remote",
        fact.replace("[Errno 2] ", ""),
        "bring them with `dvc fetch --all-commits` after `dvc push` where they were made, or make them again with "
        f"`git worktree add ../again {name}` and `dvc repro` there",
    )
