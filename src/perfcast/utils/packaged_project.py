"""Project files that the wheel holds a copy of: params.yaml, conf/, the workflow."""

from __future__ import annotations

from pathlib import Path

MARK = "params.yaml"
"""File that every project folder has."""
_PACKAGE = Path(__file__).parents[1]


def packaged_project() -> Path:
    """Return the folder of the project files: that inside the installed package, or the clone of an editable one."""
    packaged = _PACKAGE / "project"
    return packaged if (packaged / MARK).is_file() else _PACKAGE.parents[1]


def default_project(folder: Path) -> Path:
    """Return a folder where it is a project, else that of `packaged_project`, else the folder."""
    packaged = packaged_project()
    return packaged if not (folder / MARK).is_file() and (packaged / MARK).is_file() else folder
