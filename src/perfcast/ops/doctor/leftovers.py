"""What a run that was killed leaves behind: its lock, and files under temporary names."""

from __future__ import annotations

from pathlib import Path

from perfcast.ops.doctor.base import CARE, FINE, Finding, Place
from perfcast.run_lock import state, unfinished

ORDER = 50


def look(place: Place) -> list[Finding]:
    """Tell a lock whose run is alive from one that was left, and count what was never finished."""
    return [_lock(place), _unfinished(place)]


def _lock(place: Place) -> Finding:
    found = state(place.project, place.results.name)
    if found.alive:
        who = f" (process {found.owner.pid} since {found.owner.since})" if found.owner else ""
        return Finding("lock", CARE, f"held by a run that goes on{who}", "wait until it ends")
    if found.jobs:
        told = f"jobs of a killed run go on (process {', '.join(map(str, found.jobs))})"
        return Finding("lock", CARE, told, "wait until they end, or end them")
    if found.owner and not found.owner.is_here:
        told = f"of a run on {found.owner.host} since {found.owner.since}"
        return Finding("lock", CARE, told, "wait for it or, if it is gone, run snakemake --unlock")
    if found.owner:
        told = f"left by the run of {found.owner.since}, which was killed"
        return Finding("lock", CARE, told, "run snakemake: it clears the lock and goes on from there")
    return _of_snakemake(place.project)


def _of_snakemake(project: Path) -> Finding:
    if not any((project / ".snakemake" / "locks").glob("*.lock")):
        return Finding("lock", FINE, "none")
    running = runs_in(project)
    if running:
        told = f"held by a run that goes on (process {', '.join(map(str, running))})"
        return Finding("lock", CARE, told, "wait until it ends")
    return Finding("lock", CARE, "left by a run that was killed", "run snakemake --unlock, then start again")


def _unfinished(place: Place) -> Finding:
    left = unfinished(place.project, place.results.name)
    if not left:
        return Finding("unfinished files", FINE, "none")
    told = f"{len(left)} under temporary names in {place.results.name}, which nothing reads"
    return Finding("unfinished files", CARE, told, "the run that clears a killed one's lock removes them")


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
