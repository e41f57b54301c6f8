"""What changed in the code: by git between two revisions, by recorded digests where a folder is one of the sides."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from perfcast.comparing.sides import Side

WATCHED = ("src", "conf", "workflow", "Snakefile", "pyproject.toml", "requirements.lock")
"""What the results are made by; tests and prose change nothing."""


@dataclass(frozen=True)
class CodeChange:
    """One file with its added and removed lines (None: not counted), or one dependency of another digest."""

    path: str
    added: int | None = None
    removed: int | None = None


def code_changes(a: Side, b: Side, project: Path) -> tuple[list[CodeChange], str]:
    """Return what differs and how it is known, in words; no change may also mean that nothing is known."""
    if a.commit and b.commit:
        if a.commit == b.commit:
            return [], f"both are commit {a.commit[:7]}"
        return _numstat(project, a.commit, b.commit), f"git diff {a.commit[:7]} {b.commit[:7]}"
    if a.lock is None or b.lock is None:
        silent = " and ".join(side.label for side in (a, b) if side.lock is None)
        return [], f"not recorded: no dvc.lock speaks of {silent}"
    before, after = a.lock.code, b.lock.code
    changed = [CodeChange(path) for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return changed, "digests that dvc.lock recorded"


def _numstat(project: Path, before: str, after: str) -> list[CodeChange]:
    command = ["git", "-C", str(project), "diff", "--numstat", "--no-renames", before, after, "--", *WATCHED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    changes = []
    for line in done.stdout.splitlines():
        added, removed, path = line.split("\t")
        counts = [None if count == "-" else int(count) for count in (added, removed)]
        changes.append(CodeChange(path, *counts))
    return sorted(changes, key=lambda change: (-(change.added or 0) - (change.removed or 0), change.path))
