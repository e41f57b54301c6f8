"""Files that a wheel has beside its modules: those of the project (params.yaml, conf/, the workflow), and champions."""

from __future__ import annotations

from pathlib import Path

MARK = "params.yaml"
"""File that every project folder has."""
_PACKAGE = Path(__file__).parents[1]
CHAMPIONS = _PACKAGE / "champions"
"""Folders of champions by dataset: `make release` puts them into the wheel, a clone has none."""


def packaged_project() -> Path:
    """Return the folder of the project files: that inside the installed package, or the clone of an editable one."""
    packaged = _PACKAGE / "project"
    return packaged if (packaged / MARK).is_file() else _PACKAGE.parents[1]


def default_project(folder: Path) -> Path:
    """Return a folder where it is a project, else that of `packaged_project`, else the folder."""
    packaged = packaged_project()
    return packaged if not (folder / MARK).is_file() and (packaged / MARK).is_file() else folder


def default_champion(results: Path, dataset: str) -> Path:
    """Return the folder of a run's champion; where nobody named a run and there is none, that of the package."""
    folder = results / "champion" / dataset
    packaged = CHAMPIONS / dataset
    stands_in = results == Path("results") and not folder.exists() and packaged.is_dir()
    return packaged if stands_in else folder
