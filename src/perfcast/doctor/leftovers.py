"""What a run that was killed leaves behind: Snakemake's lock, and files under temporary names."""

from __future__ import annotations

import re
from pathlib import Path

from perfcast.doctor.base import CARE, FINE, Finding, Place

ORDER = 50
_TEMPORARY = re.compile(r"^\..+\.[a-z0-9_]{8}(\.\w+)*$")
"""Names that `io.atomic_path` and `io.atomic_folder` give until a file is whole."""


def look(place: Place) -> list[Finding]:
    """Tell a lock whose run is alive from one that was left, and count what was never finished."""
    return [_lock(place.project), _unfinished(place)]


def _lock(project: Path) -> Finding:
    if not any((project / ".snakemake" / "locks").glob("*.lock")):
        return Finding("lock", FINE, "none")
    running = runs_in(project)
    if running:
        told = f"held by a run that goes on (process {', '.join(map(str, running))})"
        return Finding("lock", CARE, told, "wait until it ends")
    return Finding("lock", CARE, "left by a run that was killed", "run snakemake --unlock, then start again")


def _unfinished(place: Place) -> Finding:
    left = [path for path in place.results.rglob(".*") if _TEMPORARY.match(path.name)] if place.results.is_dir() else []
    if not left:
        return Finding("unfinished files", FINE, "none")
    told = f"{len(left)} under temporary names in {place.results.name}, which nothing reads"
    return Finding("unfinished files", CARE, told, "delete them when no run goes on")


def runs_in(project: Path, proc: Path = Path("/proc")) -> list[int]:
    """Return the processes of Snakemake that work in a folder; none where the system does not show them."""
    found = []
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            where = (folder / "cwd").resolve(strict=True)
        except OSError:  # another user's, or gone
            continue
        if where == project.resolve() and any(
            Path(word.decode(errors="replace")).name == "snakemake" for word in words
        ):
            found.append(int(folder.name))
    return sorted(found)
