"""Build step that copies further files into the wheel, where `perfcast.utils.packaged_project` finds them.

They are the project files, and the champions of the folder PERFCAST_CHAMPIONS, which `make release` names.
"""

import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROJECT_FILES = ("params.yaml", "Snakefile", "conf", "workflow")


class BuildWithProject(build_py):
    """Build the package and copy the project files beside its modules."""

    def run(self) -> None:
        """Copy the files of the modules, then those of the project; an editable build finds them in the clone."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "perfcast" / "project"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in PROJECT_FILES:
            source = Path(__file__).parent / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, target / name)
        champions = Path(self.build_lib) / "perfcast" / "champions"
        shutil.rmtree(champions, ignore_errors=True)
        if folder := os.environ.get("PERFCAST_CHAMPIONS"):
            shutil.copytree(folder, champions)


setup(cmdclass={"build_py": BuildWithProject})
