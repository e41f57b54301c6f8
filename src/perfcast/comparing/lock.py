"""What `dvc.lock` recorded of the run that made a results folder: digests of code, and parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfcast.plain_yaml import read_mapping


@dataclass(frozen=True)
class Lock:
    """One recorded run: `code` maps a dependency to its digest, `params` are those it ran with, `outs` its outputs."""

    code: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    outs: Mapping[str, str] = field(default_factory=dict)


def parse_lock(text: str, results: str = "results") -> Lock | None:
    """Return the record of the stage that made `<results>/evaluation`, or None when there is none."""
    content = read_mapping(text, "dvc.lock")
    for stage in (content.get("stages") or {}).values():
        outs = {str(out["path"]): str(out.get("md5", "")) for out in stage.get("outs", ())}
        if f"{results}/evaluation" in outs:
            params: dict[str, Any] = {}
            for values in (stage.get("params") or {}).values():
                params.update(values or {})
            code = {str(dep["path"]): str(dep.get("md5", "")) for dep in stage.get("deps", ())}
            return Lock(code, params, outs)
    return None


def lock_beside(folder: Path) -> Lock | None:
    """Return the record beside a results folder, or None when it does not speak of what the folder holds now.

    Told by metrics.json: the record has its digest, and a run that DVC did not record left another file.
    """
    path, metrics = folder.parent / "dvc.lock", folder / "metrics.json"
    if not path.is_file() or not metrics.is_file():
        return None
    lock = parse_lock(path.read_text(encoding="utf-8"), folder.name)
    digest = hashlib.md5(metrics.read_bytes(), usedforsecurity=False).hexdigest()
    return lock if lock is not None and lock.outs.get(f"{folder.name}/metrics.json") == digest else None
