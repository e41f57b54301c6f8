"""Options shared by all tests."""

import os
import tempfile

import pytest
from hypothesis import settings

# a run of the suite repeats; --hypothesis-profile=default tries other examples
settings.register_profile("repeatable", derandomize=True, max_examples=50)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--fix", action="store_true", default=False, help="rewrite golden tables and show the difference")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if hasattr(config, "workerinput"):  # a process of pytest-xdist has the variables of the first one
        return
    # what modules, builders and commands leave goes with the folders of pytest; a short name, for paths of sockets
    os.environ["TMPDIR"] = tempfile.tempdir = str(config._tmp_path_factory.mktemp("t", numbered=False))
