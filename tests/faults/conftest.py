"""One undisturbed run, which all tests of faults compare with."""

import pytest
from killing import tiny_project, undisturbed


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """A project whose run has ended, when what happened in it, and its results."""
    project = tiny_project(tmp_path_factory.mktemp("undisturbed") / "project")
    return project, *undisturbed(project)


@pytest.fixture(scope="session")
def expected(reference):
    return reference[2]
