"""Options and folders that several commands share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

MIRROR_VARIABLE = "PERFCAST_MIRROR"
CACHE_VARIABLE = "PERFCAST_CACHE"


def add_project(parser: argparse.ArgumentParser) -> None:
    """Declare the folder that holds params.yaml and conf/."""
    parser.add_argument("--project", type=Path, default=Path(), help="folder of params.yaml and conf/ (default: .)")


def mirror_folders(configured: Sequence[str], project: Path, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the mirror folders to search: those of PERFCAST_MIRROR first, then the configured ones."""
    named = [entry for entry in environment.get(MIRROR_VARIABLE, "").split(os.pathsep) if entry]
    return [project / entry for entry in (*named, *configured)]


def cache_folder(project: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of verified downloads: PERFCAST_CACHE, or one inside the project."""
    return project / environment.get(CACHE_VARIABLE, ".perfcast-cache")


def embedded_folder(project: Path) -> Path:
    """Return the folder of the data that is versioned with the project itself."""
    return project / "data" / "embedded"


def present_sources(raw: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the folders of the sources that were ingested, by name."""
    from perfcast.utils.io import read_object

    status = {name: read_object(raw / name / "manifest.json", "status")["status"] for name in names}
    return {name: raw / name for name in status if status[name] == "present"}
