"""Remains of a killed run: its lock, and files under temporary names."""

from __future__ import annotations

from pathlib import Path

from perfcast.doctor.base import CARE, FINE, Finding, Place
from perfcast.io import abandoned

ORDER = 50


def look(place: Place) -> list[Finding]:
    """Return the state of Snakemake's lock and the number of unfinished files."""
    return [_lock(place.project), _unfinished(place)]


def _lock(project: Path) -> Finding:
    if not any((project / ".snakemake" / "locks").glob("*.lock")):
        return Finding("lock", FINE, "none")
    running = runs_in(project)
    if running:
        holder = f"held by a run that goes on (process {', '.join(map(str, running))})"
        return Finding("lock", CARE, holder, "wait until it ends")
    return Finding("lock", CARE, "left by a run that was killed", "run snakemake --unlock, then start again")


def _unfinished(place: Place) -> Finding:
    left = list(abandoned(place.results, without={place.results / "mlflow"}))
    if not left:
        return Finding("unfinished files", FINE, "none")
    count = f"{len(left)} under temporary names in {place.results.name}, which nothing reads"
    return Finding("unfinished files", CARE, count, "the next run removes them")


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
