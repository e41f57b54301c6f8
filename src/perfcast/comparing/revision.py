"""The results of a git revision, from DVC's cache or remote, without touching the working tree. Only this knows DVC."""

from __future__ import annotations

import logging
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
    from dvc.scm import SCM, SCMError, resolve_rev
    from dvc_data.index import DataIndexDirError

    for noisy in ("dvc", "dvc_data", "dvc_objects"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    try:
        commit = str(resolve_rev(SCM(str(project)), name))
    except SCMError:
        raise UserError(
            "results to compare must be a results folder or a git revision",
            f"{name!r} is neither a folder nor a tag, branch, commit or DVC experiment",
            "`git tag` and `git log --oneline` list revisions",
        )
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
