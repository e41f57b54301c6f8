"""Check for leftovers of a killed run: its lock, and files under temporary names."""

from __future__ import annotations

from pathlib import Path

from perfcast.ops.doctor.findings import CARE, FINE, Finding, ProjectPlace
from perfcast.utils.io import abandoned_paths


def check(place: ProjectPlace) -> list[Finding]:
    """Return the state of the lock, and count unfinished files."""
    return [_lock(place.project), _unfinished(place)]


def _lock(project: Path) -> Finding:
    if not any((project / ".snakemake" / "locks").glob("*.lock")):
        return Finding("lock", FINE, "none")
    running = runs_in(project)
    if running:
        fact = f"held by an active run (process {', '.join(map(str, running))})"
        return Finding("lock", CARE, fact, "wait until it ends")
    return Finding("lock", CARE, "left by a run that was killed", "run snakemake --unlock, then start again")


def _unfinished(place: ProjectPlace) -> Finding:
    left = list(abandoned_paths(place.results, without={place.results / "mlflow"}))
    if not left:
        return Finding("unfinished files", FINE, "none")
    fact = f"{len(left)} under temporary names in {place.results.name}, which nothing reads"
    return Finding("unfinished files", CARE, fact, "the next run removes them")


def runs_in(project: Path, proc: Path = Path("/proc")) -> list[int]:
    """Return the processes of Snakemake that work in a folder; none where the system does not show them."""
    processes = []
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            where = (folder / "cwd").resolve(strict=True)
        except OSError:  # another user's, or gone
            continue
        if where == project.resolve() and any(
            Path(word.decode(errors="replace")).name == "snakemake" for word in words
        ):
            processes.append(int(folder.name))
    return sorted(processes)
