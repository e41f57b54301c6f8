"""The two results that are compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfcast.comparing.lock import Lock, lock_beside, parse_lock
from perfcast.comparing.revision import fetch_revision
from perfcast.errors import UserError
from perfcast.io import read_object


@dataclass(frozen=True)
class Side:
    """One of two results.

    `label` is what the user called it, `folder` where its files are, `commit` the revision it is of (None for a
    folder), `lock` what DVC recorded of the run that made it, if it did.
    """

    label: str
    folder: Path
    commit: str | None
    lock: Lock | None

    def summaries(self) -> dict[str, dict[str, Any]]:
        """Return {data set: summary of its evaluation}, in alphabetical order."""
        paths = sorted((self.folder / "evaluation").glob("*/summary.json"))
        return {
            path.parent.name: read_object(path, "dataset", "resamples", "seed", "level", "metrics") for path in paths
        }


@contextmanager
def open_side(name: str, project: Path) -> Iterator[Side]:
    """Give one side while the block lasts: a results folder as it is, or a revision's results in a temporary folder.

    A folder comes before a revision of the same name.
    Raises: UserError when `name` is neither, or there is no evaluation.
    """
    if Path(name).is_dir():
        side = Side(name, Path(name), None, lock_beside(Path(name).resolve()))
        if not side.summaries():
            raise UserError(
                "results to compare must hold an evaluation",
                f"there is no {Path(name) / 'evaluation' / '<data set>' / 'summary.json'}",
                "name the folder that `snakemake` wrote (results, results/full), not one inside it",
            )
        yield side
        return
    with tempfile.TemporaryDirectory(prefix="perfcast-compare-") as temporary:
        commit, lock = fetch_revision(project, name, Path(temporary))
        yield Side(name, Path(temporary), commit, parse_lock(lock))
