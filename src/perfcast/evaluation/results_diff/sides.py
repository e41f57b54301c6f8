"""The two compared results: a results folder, or the results of a git revision that DVC keeps."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from perfcast.evaluation.evaluation_tables import read_summary
from perfcast.utils.errors import UserError
from perfcast.utils.progress import Progress, ignore_progress
from perfcast.utils.safe_yaml import read_mapping

if TYPE_CHECKING:
    from dvc.api import DVCFileSystem

RESULTS = "results"
"""The results folder that dvc.yaml versions."""
_PATTERNS = (
    *("metrics.json", "raw/*/manifest.json", "standard/*.parquet", "features/*.parquet", "splits/*/*.parquet"),
    *("in_domain/*/*.parquet", "evaluation/*/summary.json"),
    *(f"runs/*/*/*/{name}" for name in ("predictions.parquet", "backtest.parquet", "config.yaml")),
)
"""Files that a comparison reads; models, plots and raw files are not fetched."""


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
        for path in _list_paths(files, name):
            target = out / PurePosixPath(path).relative_to(RESULTS)
            target.parent.mkdir(parents=True, exist_ok=True)
            files.get_file(path, str(target))
    except (DvcException, DataIndexDirError, OSError) as error:
        raise _absent(name, str(error))
    return commit, lock


def pinned(project: Path, name: str) -> tuple[str, str, str]:
    """Return the commit, dvc.lock and metrics.json of a revision, which git holds.

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


def digests_of(project: Path, paths: Sequence[str], progress: Progress = ignore_progress) -> dict[str, str]:
    """Return the digests that dvc.lock would record of files and folders as they are now; "" of an absent one."""
    from dvc.repo import Repo
    from dvc_data.hashfile.build import build

    digests = {}
    with Repo(str(project)) as repo:
        for done, path in enumerate(paths):
            progress(path, done, len(paths))
            where = project.resolve() / path
            if where.exists():
                *_, content = build(repo.cache.local, str(where), repo.fs, "md5", dry_run=True, ignore=repo.dvcignore)
                digests[path] = str(content.hash_info.value)
            else:
                digests[path] = ""
    return digests


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


def _list_paths(files: DVCFileSystem, name: str) -> list[str]:
    """Return the paths a comparison reads. Raises: UserError when the revision's evaluation cannot be listed."""
    paths = sorted(str(path).lstrip("/") for path in files.find(RESULTS))
    selected = [
        path for path in paths if any(PurePosixPath(path).match(f"{RESULTS}/{pattern}") for pattern in _PATTERNS)
    ]
    if not any(path.endswith("/summary.json") for path in selected):
        raise _absent(name, f"no file of {RESULTS}/evaluation can be listed")
    return selected


def _absent(name: str, fact: str) -> UserError:
    return UserError(
        f"the results of {name!r} must be in the DVC cache or in a remote",
        fact.replace("[Errno 2] ", ""),
        "bring them with `dvc fetch --all-commits` after `dvc push` where they were made, or make them again with "
        f"`git worktree add ../again {name}` and `dvc repro` there",
    )


@dataclass(frozen=True)
class Lock:
    """One recorded run: `code` maps a dependency to its digest, `params` are those it ran with, `outs` its outputs."""

    code: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    outs: Mapping[str, str] = field(default_factory=dict)


def parse_lock(text: str, results: str = "results") -> Lock | None:
    """Return the record of all stages, or None when none of them made `<results>/evaluation`.

    Outputs of one stage that another one reads are no code.
    """
    params: dict[str, Any] = {}
    code: dict[str, str] = {}
    outs: dict[str, str] = {}
    for stage in (read_mapping(text, "dvc.lock").get("stages") or {}).values():
        outs |= {str(out["path"]): str(out.get("md5", "")) for out in stage.get("outs", ())}
        code |= {str(dep["path"]): str(dep.get("md5", "")) for dep in stage.get("deps", ())}
        for values in (stage.get("params") or {}).values():
            params.update(values or {})
    if f"{results}/evaluation" not in outs:
        return None
    return Lock({path: digest for path, digest in code.items() if path not in outs}, params, outs)


def lock_beside(folder: Path) -> Lock | None:
    """Return the record beside a results folder, or None when the folder has other results now.

    The record has the digest of metrics.json, which differs after a run that DVC did not record.
    """
    path, metrics = folder.parent / "dvc.lock", folder / "metrics.json"
    if not path.is_file() or not metrics.is_file():
        return None
    lock = parse_lock(path.read_text(encoding="utf-8"), folder.name)
    digest = hashlib.md5(metrics.read_bytes(), usedforsecurity=False).hexdigest()
    return lock if lock is not None and lock.outs.get(f"{folder.name}/metrics.json") == digest else None


@dataclass(frozen=True)
class Side:
    """One of two results.

    `label` is the name that the user typed, `folder` where its files are, `commit` the revision it is of (None for a
    folder), `lock` what DVC recorded of the run that made it, if it did.
    """

    label: str
    folder: Path
    commit: str | None
    lock: Lock | None

    def summaries(self) -> dict[str, dict[str, Any]]:
        """Return {dataset: summary of its evaluation}, in alphabetical order."""
        paths = sorted((self.folder / "evaluation").glob("*/summary.json"))
        return {path.parent.name: read_summary(path) for path in paths}


@contextmanager
def open_side(name: str, project: Path) -> Iterator[Side]:
    """Yield one side while the block lasts: a results folder as it is, or a revision's results in a temporary folder.

    A folder comes before a revision of the same name.
    Raises: UserError when `name` is neither, or there is no evaluation.
    """
    if Path(name).is_dir():
        side = Side(name, Path(name), None, lock_beside(Path(name).resolve()))
        if not side.summaries():
            raise UserError(
                "results to compare must hold an evaluation",
                f"there is no {Path(name) / 'evaluation' / '<dataset>' / 'summary.json'}",
                "name the folder that `snakemake` wrote (results, results/full), not one inside it",
            )
        yield side
        return
    with tempfile.TemporaryDirectory(prefix="perfcast-compare-") as temporary:
        commit, lock = fetch_revision(project, name, Path(temporary))
        yield Side(name, Path(temporary), commit, parse_lock(lock))
