"""Build step that copies the project files into the wheel, where `perfcast.utils.packaged_project` finds them."""

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


setup(cmdclass={"build_py": BuildWithProject})
